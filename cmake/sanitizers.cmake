# -DGMB_SANITIZE=address,undefined or thread; used by the asan and tsan presets.
set(GMB_SANITIZE "" CACHE STRING "Sanitizers to build with, comma separated")
if(GMB_SANITIZE)
  add_compile_options(-fsanitize=${GMB_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  if(GMB_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # AddressSanitizer finds the same accesses; this check takes a fifth of the
    # time of compilation.
    add_compile_options(-fno-sanitize=object-size)
  endif()
  add_link_options(-fsanitize=${GMB_SANITIZE})
endif()
if(GMB_SANITIZE MATCHES "thread")
  # Shows the sanitizer what the distribution's gRPC orders, in every program.
  add_library(gmb_tsan_grpc OBJECT ${CMAKE_SOURCE_DIR}/tools/tsan_grpc.cc)
  target_link_libraries(gmb_tsan_grpc PRIVATE gmb_warnings)
  link_libraries(
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:gmb_tsan_grpc>>)
  # So that libraries of libraries find it, too: lld does not look at those.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-rdynamic>)
endif()
option(GMB_BUILD_FUZZERS "Build the fuzz targets, which needs clang (the preset fuzz)" OFF)
if(GMB_BUILD_FUZZERS)
  # All of ours counts what it reaches; libFuzzer itself comes with each target.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# Beside any of those, or alone.
option(GMB_COVERAGE "Count the lines that are run, for llvm-cov, which needs clang" OFF)
if(GMB_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()
