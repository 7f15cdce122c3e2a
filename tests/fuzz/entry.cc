// libFuzzer's way to one target.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gmb::fuzz::GMB_FUZZ_TARGET({data, size});
  return 0;
}
