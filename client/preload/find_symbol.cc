// `gmb run`: lookups that get the driver's own functions.
#include "client/preload/find_symbol.h"

#include <dlfcn.h>

namespace gmb::preload {
namespace {

thread_local int real_symbols_here = 0;

DlsymFunction FindDlsym() {
  void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  return reinterpret_cast<DlsymFunction>(found);
}

}  // namespace

// Not a static variable's start-up: it may be asked for by that of another
// library. Two threads that get here first both find the same.
DlsymFunction RealDlsym() {
  static DlsymFunction found = nullptr;
  DlsymFunction known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known == nullptr) {
    known = FindDlsym();
    __atomic_store_n(&found, known, __ATOMIC_RELAXED);
  }
  return known;
}

void* RealSymbol(void* library, const char* name) {
  return RealDlsym()(library, name);
}

RealSymbolsHere::RealSymbolsHere() { ++real_symbols_here; }
RealSymbolsHere::~RealSymbolsHere() { --real_symbols_here; }
bool RealSymbolsHere::Any() { return real_symbols_here > 0; }

}  // namespace gmb::preload
