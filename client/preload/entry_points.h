#ifndef GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_
#define GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_

#include <cstdint>

namespace gmb::preload {

// A function of the driver that this library answers in its place.
struct EntryPoint {
  // As libcuda.so.1 exports it: "cuMemAlloc_v2".
  const char* symbol;
  // As cuGetProcAddress knows it: "cuMemAlloc".
  const char* name;
  // The CUDA version from which on that name means this function: 3020.
  int since;
  // The variant for the default stream of each thread.
  bool per_thread;
  void* function;
};

// For dlsym; null when it is none of ours.
[[nodiscard]] const EntryPoint* FindBySymbol(const char* symbol);
// For cuGetProcAddress, with its arguments; null when it is none of ours.
[[nodiscard]] const EntryPoint* FindByName(const char* name, int cuda_version,
                                           uint64_t flags);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_
