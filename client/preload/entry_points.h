#ifndef GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_
#define GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_

namespace gmb::preload {

// A function of the driver that this library answers in its place.
struct EntryPoint {
  const char* symbol;  // as libcuda.so.1 exports it: "cuMemAlloc_v2"
  void* function;      // ours
  // A wait, which ours only counts: nothing is missed where the driver's is called.
  bool only_counted = false;
};

// `library` is the driver's. Before a program can find a function of ours.
void LoadServedFunctions(void* library);

// Null when it is none of ours.
[[nodiscard]] const EntryPoint* FindBySymbol(const char* symbol);
// By the address that the driver itself gives for it. The meaning of a name
// depends on the CUDA version and the flags that a program asks with, and a
// newer driver may have a newer form of it, which takes other arguments.
[[nodiscard]] const EntryPoint* FindByReal(void* real);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_ENTRY_POINTS_H_
