# The toolchain of the presets asan, tsan and tidy: clang 14, which Debian 12
# ships, or the nearest newer one. The C compiler is the one beside it.
find_program(GMB_CLANGXX REQUIRED
             NAMES clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 clang++
             DOC "clang++ for the sanitizer and lint presets")
string(REGEX REPLACE "clang\\+\\+([^/]*)$" "clang\\1" gmb_clang "${GMB_CLANGXX}")
set(CMAKE_CXX_COMPILER "${GMB_CLANGXX}")
set(CMAKE_C_COMPILER "${gmb_clang}")
