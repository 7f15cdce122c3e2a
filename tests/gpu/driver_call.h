#ifndef GMB_TESTS_GPU_DRIVER_CALL_H_
#define GMB_TESTS_GPU_DRIVER_CALL_H_

#include <cuda.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tests/gpu/driver_lookup.h"

namespace gmb::test {

template <typename Function>
Function Find(const char* name, int version) {
  return reinterpret_cast<Function>(FindInDriver(name, version));
}

// Ends the program with 1 where the driver says an error.
inline void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %s: %d\n", program_invocation_short_name, what,
               result);
  std::exit(1);
}

}  // namespace gmb::test

// Calls the driver's function, which has to succeed: GMB_CALL(cuInit, 0). It is
// found by the name without its version, as the CUDA runtime asks: as it was in
// CUDA 11.2, or in a later one. (One macro cannot use the other: cuda.h gives the
// names their versions.)
#define GMB_CALL(name, ...)                                 \
  do {                                                      \
    static const auto function =                            \
        ::gmb::test::Find<decltype(&(name))>(#name, 11020); \
    ::gmb::test::Must(function(__VA_ARGS__), #name);        \
  } while (false)
#define GMB_CALL_SINCE(version, name, ...)                    \
  do {                                                        \
    static const auto function =                              \
        ::gmb::test::Find<decltype(&(name))>(#name, version); \
    ::gmb::test::Must(function(__VA_ARGS__), #name);          \
  } while (false)

#endif  // GMB_TESTS_GPU_DRIVER_CALL_H_
