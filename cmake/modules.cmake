# gmb_library(<name> SOURCES ... DEPS ...): one static library a folder, with
# includes rooted at the top of the tree (#include "quota/engine.h").
function(gmb_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:gmb_warnings>)
  gmb_precompile(${name} products ${ARG_DEPS})
endfunction()

# gmb_options_of_tests(<target>...): the options that the sources of tests are compiled
# with, and the precompiled headers that they share, which need the very same. Nothing
# is optimised, and in an optimised build, whose tests are linked without debugging
# information (below), none is made.
function(gmb_options_of_tests)
  foreach(name ${ARGN})
    target_compile_options(${name} PRIVATE -O0)
    if(NOT GMB_SANITIZE)
      target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
    endif()
  endforeach()
endfunction()

# gmb_test_code(<target>...): libraries and programs of tests, which are compiled as
# the tests' own sources are: without optimisation, and with their headers. Not for
# reference models and interpreters, in which property tests and fuzzers spend their
# time, nor for what measures, or floods. Called after target_link_libraries.
function(gmb_test_code)
  gmb_options_of_tests(${ARGN})
  foreach(name ${ARGN})
    get_target_property(type ${name} TYPE)
    if(NOT type STREQUAL "EXECUTABLE")  # for programs alone, as the headers are
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${name} PRIVATE -fPIE)
    endif()
    get_target_property(libraries ${name} LINK_LIBRARIES)
    gmb_precompile(${name} tests ${libraries})
    target_link_libraries(${name} PRIVATE GTest::gmock)  # its definitions, which the headers have
  endforeach()
endfunction()

# Builds the tests with threads, which CI runs once more under ThreadSanitizer.
add_custom_target(threaded_tests)

# gmb_test(<name> SOURCES ... DEPS ... [LABELS ...] [TIMEOUT s] [PROCESSORS n] [NO_MAIN] [THREADS]):
# a GoogleTest binary, registered with CTest as one test. The timeout ends what
# hangs, and is far more than a test takes on a loaded machine of 2 cores. It is
# skipped where all of its cases are (tests/run_all.h). THREADS gives it the label
# "threads": it has more than one thread, or talks to a program that has. It counts
# as PROCESSORS of the jobs that CTest runs at once (1); those of a greater COST
# start first. Its own sources are not optimised: most of a clean build's time went
# there, and what they test is.
function(gmb_test name)
  cmake_parse_arguments(ARG "NO_MAIN;RUN_SERIAL;THREADS" "TIMEOUT;PROCESSORS;COST" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  if(ARG_NO_MAIN)
    set(main GTest::gtest)
  else()
    set(main gmb_test_main)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock ${main} gmb_warnings)
  gmb_options_of_tests(${name})
  if(NOT GMB_SANITIZE)
    # Two thirds of an optimised test's bytes, and all of these would fill small
    # disks. Names of functions stay; the preset dev has everything for a debugger.
    target_link_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Wl,--strip-debug>)
  endif()
  gmb_precompile(${name} tests ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(ARG_THREADS)
    list(APPEND ARG_LABELS threads)
    add_dependencies(threaded_tests ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       RUN_SERIAL ${ARG_RUN_SERIAL} PROCESSORS ${ARG_PROCESSORS} SKIP_RETURN_CODE 77)
endfunction()
