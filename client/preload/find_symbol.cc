// `gmb run`: lookups that get the driver's own functions.
#include "client/preload/find_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>

#include "client/preload/loaded_library.h"

namespace gmb::preload {
namespace {

thread_local int real_symbols_here = 0;

// Whether it is the C library, or its part of before 2.34.
bool IsOfLoader(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const file = slash == nullptr ? path : slash + 1;
  return std::strncmp(file, "libc.so", std::strlen("libc.so")) == 0 ||
         std::strncmp(file, "libdl.so", std::strlen("libdl.so")) == 0;
}

// The answer that dl_iterate_phdr would give; the ELF header is where the
// library begins.
dl_phdr_info InfoOf(const link_map& library) {
  const auto* const header =
      reinterpret_cast<const Elf64_Ehdr*>(library.l_addr);
  dl_phdr_info info{};
  info.dlpi_addr = library.l_addr;
  info.dlpi_name = library.l_name;
  info.dlpi_phdr =
      reinterpret_cast<const Elf64_Phdr*>(library.l_addr + header->e_phoff);
  info.dlpi_phnum = header->e_phnum;
  return info;
}

// No function finds it. dlsym and dlvsym are ours, and somebody else's dlopen or
// dl_iterate_phdr may be about to ask us where the next one is. These libraries
// were there before any code ran, and stay.
DlvsymFunction FindDlvsym() {
  for (const link_map* library = _r_debug.r_map; library != nullptr;
       library = library->l_next) {
    if (!IsOfLoader(library->l_name)) continue;
    const dl_phdr_info info = InfoOf(*library);
    if (void* const found = LoadedLibrary(info).Find("dlvsym"))
      return reinterpret_cast<DlvsymFunction>(found);
  }
  return nullptr;
}

DlsymFunction FindDlsym() {
  void* found = RealDlvsym()(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (found == nullptr) found = RealDlvsym()(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  return reinterpret_cast<DlsymFunction>(found);
}

// Not a static variable's start-up: it may be asked for by that of another
// library. Two threads that get here first both find the same.
template <typename Function>
Function FoundOnce(Function (*find)()) {
  static Function found = nullptr;
  Function known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known == nullptr) {
    known = find();
    __atomic_store_n(&found, known, __ATOMIC_RELAXED);
  }
  return known;
}

}  // namespace

DlsymFunction RealDlsym() { return FoundOnce<DlsymFunction>(&FindDlsym); }
DlvsymFunction RealDlvsym() { return FoundOnce<DlvsymFunction>(&FindDlvsym); }

void* RealSymbol(void* library, const char* name) {
  return RealDlsym()(library, name);
}

RealSymbolsHere::RealSymbolsHere() { ++real_symbols_here; }
RealSymbolsHere::~RealSymbolsHere() { --real_symbols_here; }
bool RealSymbolsHere::Any() { return real_symbols_here > 0; }

}  // namespace gmb::preload
