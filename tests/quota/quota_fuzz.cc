// The interpreter as a libFuzzer target: cmake -DGMB_BUILD_FUZZERS=ON with
// clang.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/quota/interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto result = gmb::quota::Interpret({data, size});
  if (!result.problem.empty()) {
    std::fprintf(stderr, "%s\n", result.problem.c_str());
    std::abort();
  }
  return 0;
}
