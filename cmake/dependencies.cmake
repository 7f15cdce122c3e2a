# Everything comes from the distribution's packages. Debian and Ubuntu ship
# gRPC, Abseil and friends with pkg-config files on every release we support,
# and CMake packages on some; pkg-config is the one way that works on all.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
include(grpcpp)
if(NOT GRPCPP_FOUND)
  message(FATAL_ERROR "gmb needs gRPC for C++ (Debian: libgrpc++-dev)")
endif()
find_package(absl REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_library(GRPCPP_REFLECTION_LIBRARY grpc++_reflection REQUIRED)  # no pkg-config file

# One name for the target, which yaml-cpp 0.8 (Ubuntu 24.04) put in a namespace.
find_package(yaml-cpp REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# GPU support needs none: device/cuda/abi/ declares what is used of the driver,
# which is loaded at run time. Tests hold those declarations against the toolkit's.
find_path(GMB_CUDA_INCLUDE_DIR cuda.h
          HINTS /usr/local/cuda/include /usr/include ENV CUDA_HOME
          PATH_SUFFIXES include
          DOC "Where cuda.h is, for tests alone; GPU support is built without it")
if(GMB_CUDA_INCLUDE_DIR)
  message(STATUS "gmb: devices vmm, ipc and host; tests compare with ${GMB_CUDA_INCLUDE_DIR}/cuda.h")
else()
  message(STATUS "gmb: devices vmm, ipc and host; no cuda.h, which two tests and the native GPU programs need")
endif()
