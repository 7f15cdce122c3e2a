// All versions of a function, each under its own name.
// NOLINTNEXTLINE(bugprone-reserved-identifier): cuda.h's name
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#if CUDA_VERSION >= 12040
#define GMB_FACTS HeaderFacts
#include "tests/device/cuda_abi/collect.inc"
#else  // too old to declare all of it
#include "tests/device/cuda_abi/facts.h"
gmb::test::Facts gmb::test::HeaderFacts() { return {}; }
#endif
