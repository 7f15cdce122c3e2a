# Warnings for our own code; generated code does not link this.
add_library(gmb_warnings INTERFACE)
target_compile_options(gmb_warnings INTERFACE -Wall -Wextra -Werror -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(gmb_warnings INTERFACE -Wthread-safety)
endif()
