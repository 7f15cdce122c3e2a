#ifndef GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_
#define GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_

namespace gmb::preload {

// Which functions of the driver gmb knows: those that it gates or serves, and
// those that are harmless. Each version of a function is one of its own.

// The newest of which they are known, as the driver says it: CUDA 13.0.
inline constexpr int kNewestCudaVersion = 13000;

// Whether it is a name as the driver's functions have: "cuX".
[[nodiscard]] inline bool IsNameOfDriver(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// As libcuda.so.1 exports it: "cuMemAlloc_v2".
[[nodiscard]] bool IsKnownSymbol(const char* symbol);
// Whether one of them has this name, with whatever version and suffix.
[[nodiscard]] bool IsFormOfKnown(const char* name);

// "cuMemMap" of "cuMemMap_v9", and so of each function that takes a handle of
// memory among its first arguments. Null for others.
[[nodiscard]] const char* FormOfHandleTaker(const char* name);

// `library` is the driver's. Before a program can find a function of ours.
void LoadKnownFunctions(void* library);

// The function that a program gets that has found `real`, a function of the
// driver, under `name`: ours if it is served here, our wrapper if it is gated,
// itself if it is harmless, and otherwise itself behind a tripwire.
[[nodiscard]] void* InPlaceOf(const char* name, void* real);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_
