# gRPC for C++, as PkgConfig::GRPCPP: for the build, and installed beside gmbConfig.cmake.
#
# pkg-config follows every path through Abseil's modules, and is asked 18 times: 31 s
# of processor time (Debian 12). It knows all of their libraries after 7 steps.
set(gmb_depth_before "$ENV{PKG_CONFIG_MAXIMUM_TRAVERSE_DEPTH}")
set(ENV{PKG_CONFIG_MAXIMUM_TRAVERSE_DEPTH} 7)
pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET GLOBAL grpc++)
if(gmb_depth_before STREQUAL "")
  unset(ENV{PKG_CONFIG_MAXIMUM_TRAVERSE_DEPTH})
else()
  set(ENV{PKG_CONFIG_MAXIMUM_TRAVERSE_DEPTH} "${gmb_depth_before}")
endif()
unset(gmb_depth_before)
