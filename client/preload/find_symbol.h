#ifndef GMB_CLIENT_PRELOAD_FIND_SYMBOL_H_
#define GMB_CLIENT_PRELOAD_FIND_SYMBOL_H_

namespace gmb::preload {

// This library's dlsym and dlvsym (dlsym.cc) answer for everybody who looks up
// the driver: the CUDA runtime (which asks libcuda.so.1 for cuGetProcAddress),
// XLA's stubs, Triton. Here are the C library's own.
using DlsymFunction = void* (*)(void*, const char*);
using DlvsymFunction = void* (*)(void*, const char*, const char*);
[[nodiscard]] DlsymFunction RealDlsym();
[[nodiscard]] DlvsymFunction RealDlvsym();
[[nodiscard]] void* RealSymbol(void* library, const char* name);

// While one lives, this thread's lookups get the driver's own functions: for
// the client library, whose mappings must not be served from leases.
class RealSymbolsHere {
 public:
  RealSymbolsHere();
  ~RealSymbolsHere();
  RealSymbolsHere(const RealSymbolsHere&) = delete;
  RealSymbolsHere& operator=(const RealSymbolsHere&) = delete;

  // Of the calling thread.
  [[nodiscard]] static bool Any();
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_FIND_SYMBOL_H_
