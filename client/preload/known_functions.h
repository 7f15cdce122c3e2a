#ifndef GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_
#define GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_

namespace gmb::preload {

// Which functions of the driver gmb knows: those that it gates or serves, and
// those that are harmless. Each version of a function is one of its own.

// Whether it is a name as the driver's functions have: "cuX".
[[nodiscard]] inline bool IsNameOfDriver(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// As libcuda.so.1 exports it: "cuMemAlloc_v2".
[[nodiscard]] bool IsKnownSymbol(const char* symbol);

// `library` is the driver's. Before a program can find a function of ours.
void LoadKnownFunctions(void* library);

// What a program gets that has found `real`, a function of the driver that is
// not served here, under `name`: itself if it is harmless, our wrapper if it is
// gated, and otherwise itself behind a tripwire.
[[nodiscard]] void* InPlaceOf(const char* name, void* real);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_KNOWN_FUNCTIONS_H_
