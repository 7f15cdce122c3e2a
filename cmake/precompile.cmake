# Precompiled headers: those of libraries, and of the wire, which most sources
# include. None of our own: a changed header would compile everything anew.
#
# A source includes what it uses all the same: the presets dev, tidy and fuzz build
# without this.
option(GMB_PRECOMPILE "Compile headers of libraries once for all sources" ON)

set(gmb_headers_plain
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstdio> <cstring> <deque>
    <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <random> <set> <sstream>
    <string> <thread> <utility> <variant> <vector>
    <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h>
    <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>)
set(gmb_headers_wire ${gmb_headers_plain}
    <gmb/v1/admin.pb.h> <gmb/v1/handle.pb.h> <gmb/v1/session.pb.h> <gmb/v1/types.pb.h>)
set(gmb_headers_test <gmock/gmock.h> <gtest/gtest.h>)

# gmb_headers_for(<name> HEADERS ... LINK ...): the target that compiles them, as
# the targets that use them are compiled.
function(gmb_headers_for name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} gmb_warnings)
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(GMB_CCACHE AND "${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache")
    set_target_properties(${name} PROPERTIES
                          CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/tools/precompile")
  endif()
endfunction()

# Whether one of `libraries` links gmb_proto, as far as they are known by now.
function(gmb_knows_wire out)
  set(${out} OFF PARENT_SCOPE)
  set(rest ${ARGN})
  set(seen)
  while(rest)
    list(POP_FRONT rest library)
    if(library STREQUAL "gmb_proto")
      set(${out} ON PARENT_SCOPE)
      return()
    endif()
    if(library IN_LIST seen OR NOT TARGET "${library}")
      continue()
    endif()
    list(APPEND seen ${library})
    get_target_property(foreign ${library} IMPORTED)
    if(foreign)
      continue()  # Abseil's targets are many
    endif()
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND rest ${links})
    endif()
  endwhile()
endfunction()

# gmb_precompile(<name> <kind> LIBRARIES...): the target's sources find them
# compiled. <kind>: "products", or "tests".
function(gmb_precompile name kind)
  if(NOT GMB_PRECOMPILE)
    return()
  endif()
  gmb_knows_wire(wire ${ARGN})
  if(wire)
    target_precompile_headers(${name} REUSE_FROM gmb_${kind}_wire_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM gmb_${kind}_headers)
  endif()
endfunction()

if(GMB_PRECOMPILE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # An option that ccache needs to see them; a collector of garbage that does
    # not walk through all of them again and again (kB); and silence about
    # libstdc++'s own strings, which g++ 12 suspects (its bug 105651) when they
    # come from there.
    foreach(option -fpch-preprocess --param=ggc-min-heapsize=393216 -Wno-array-bounds -Wno-restrict
                   -Wno-stringop-overflow -Wno-stringop-overread)
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${option}>)
    endforeach()
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
    # Without the header's own name, of which ccache does not see that it is a path.
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers/products.cc CONTENT "")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers/tests.cc CONTENT "int main() {}\n")
  set(gmb_absl absl::flat_hash_map absl::status absl::statusor absl::strings absl::time absl::span)
  add_library(gmb_products_headers OBJECT ${CMAKE_BINARY_DIR}/headers/products.cc)
  gmb_headers_for(gmb_products_headers HEADERS ${gmb_headers_plain} LINK ${gmb_absl})
  add_library(gmb_products_wire_headers OBJECT ${CMAKE_BINARY_DIR}/headers/products.cc)
  gmb_headers_for(gmb_products_wire_headers HEADERS ${gmb_headers_wire} LINK ${gmb_absl} gmb_proto)
endif()
