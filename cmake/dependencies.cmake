# Everything comes from the distribution's packages. Debian and Ubuntu ship
# gRPC, Abseil and friends with pkg-config files on every release we support,
# and CMake packages on some; pkg-config is the one way that works on all.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
find_package(absl REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_library(GRPCPP_REFLECTION_LIBRARY grpc++_reflection REQUIRED)  # no pkg-config file

# One name for the target, which yaml-cpp 0.8 (Ubuntu 24.04) put in a namespace.
find_package(yaml-cpp REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(GMB_WITH_CUDA)
  # Only the headers: the driver is loaded at run time (dlopen), never linked.
  find_path(GMB_CUDA_INCLUDE_DIR cuda.h
            HINTS /usr/local/cuda/include /usr/include ENV CUDA_HOME
            PATH_SUFFIXES include)
  if(GMB_CUDA_INCLUDE_DIR)
    message(STATUS "gmb: CUDA headers in ${GMB_CUDA_INCLUDE_DIR}: devices vmm, ipc and host")
  else()
    message(STATUS "gmb: no CUDA headers (cuda.h): the vmm and ipc devices are left out, host remains")
  endif()
else()
  unset(GMB_CUDA_INCLUDE_DIR CACHE)  # what an earlier configuration found
  message(STATUS "gmb: GMB_WITH_CUDA is off: the vmm and ipc devices are left out, host remains")
endif()
