# Most of a short command's time is the dynamic linker's: it looks up some 15,000
# names for gRPC, protobuf and the C++ library, each in one library after the other
# in the order in which the program names them, and a program with gRPC has more
# than 50. Named first are those that have, and ask for, most of the names: a seventh
# of `gmb --version` (docs/performance.md).
find_library(GMB_GRPC_LIBRARY grpc)
find_library(GMB_CRYPTO_LIBRARY crypto)
set(gmb_looked_up_first ${GMB_GRPC_LIBRARY})
if("crypto" IN_LIST GRPCPP_STATIC_LIBRARIES)  # this gRPC's TLS
  list(APPEND gmb_looked_up_first ${GMB_CRYPTO_LIBRARY})
endif()
list(APPEND gmb_looked_up_first -lstdc++ -l:libc.so.6 ${Protobuf_LIBRARY_RELEASE})
list(FILTER gmb_looked_up_first EXCLUDE REGEX "\\.a$|NOTFOUND$")

# For programs that use gRPC. Sanitizers' runtimes want a place of their own.
function(gmb_name_large_libraries_first target)
  if(GMB_SANITIZE)
    return()
  endif()
  list(JOIN gmb_looked_up_first " " libraries)
  target_link_options(${target} PRIVATE
    "SHELL:-Wl,--push-state,--no-as-needed ${libraries} -Wl,--pop-state")
endfunction()
