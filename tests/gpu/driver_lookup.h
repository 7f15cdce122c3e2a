#ifndef GMB_TESTS_GPU_DRIVER_LOOKUP_H_
#define GMB_TESTS_GPU_DRIVER_LOOKUP_H_

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace gmb::test {

// A function of the driver, found as the CUDA runtime finds it, so that `gmb run`
// serves it: by cuGetProcAddress, for that version of CUDA. Ends the program
// with 77, "cannot be tried here", where there is none.
inline void* FindInDriver(const char* name, int version) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  using Lookup = CUresult (*)(const char*, void**, int, cuuint64_t,
                              CUdriverProcAddressQueryResult*);
  const auto look_up =
      library == nullptr
          ? nullptr
          : reinterpret_cast<Lookup>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (look_up == nullptr || look_up(name, &found, version, 0, &status) != 0 ||
      found == nullptr) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(77);
  }
  return found;
}

}  // namespace gmb::test

#endif  // GMB_TESTS_GPU_DRIVER_LOOKUP_H_
