#ifndef GMB_CLIENT_PRELOAD_GATED_H_
#define GMB_CLIENT_PRELOAD_GATED_H_

#include <string_view>

namespace gmb::preload {

// A function of the driver whose calls go through the program's gate, and
// otherwise are the driver's own.
struct GatedFunction {
  const char* symbol;  // as libcuda.so.1 exports it: "cuMemcpyHtoD_v2"
  void* function;      // ours
};

// `library` is the driver's. Before a program can find a function of ours.
void LoadGatedFunctions(void* library);

// Null when it is none of them.
[[nodiscard]] const GatedFunction* FindGatedBySymbol(const char* symbol);
// By the address that the driver itself gives for it. The meaning of a name
// depends on the CUDA version and the flags that a program asks with; the
// address does not.
[[nodiscard]] const GatedFunction* FindGatedByReal(void* real);
// "cuMemcpyHtoD" of "cuMemcpyHtoD_v2_ptds".
[[nodiscard]] std::string_view BaseName(std::string_view symbol);
// Whether one of them has this name, with whatever version and suffix.
[[nodiscard]] bool IsGatedName(const char* name);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_GATED_H_
