// `gmb run`: the client library, and what it brings along.
#include "client/preload/own_libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace gmb::preload {
namespace {

// Null at first; kept as long as the process.
std::atomic<const std::vector<uint64_t>*> own = nullptr;

// The loader makes an address of it, but not where the dynamic section is
// read-only: there it is an offset still.
const char* NamesOf(const link_map& library) {
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag != DT_STRTAB) continue;
    const uint64_t at = entry->d_un.d_ptr;
    return reinterpret_cast<const char*>(
        at < library.l_addr ? library.l_addr + at : at);
  }
  return nullptr;
}

// The names of the libraries that it was linked to, which stay as long as it.
std::vector<const char*> NeededBy(const link_map& library) {
  std::vector<const char*> needed;
  const char* const names = NamesOf(library);
  if (names == nullptr) return needed;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == DT_NEEDED) needed.push_back(names + entry->d_un.d_val);
  }
  return needed;
}

}  // namespace

void OwnLibraries::Add(void* library) {
  const link_map* found = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &found) != 0) return;
  const auto at =
      std::lower_bound(addresses_.begin(), addresses_.end(), found->l_addr);
  if (at != addresses_.end() && *at == found->l_addr) return;
  addresses_.insert(at, found->l_addr);
  for (const char* const name : NeededBy(*found)) {
    // The one that it got when it was loaded: the loader has one of a name.
    void* const needed = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (needed == nullptr) continue;
    Add(needed);
    dlclose(needed);  // it stays, for the library that needs it
  }
  dlerror();  // is the program's to ask
}

void OwnLibraries::Publish() {
  own.store(new std::vector<uint64_t>(std::move(addresses_)));
}

bool OwnLibraries::Has(uint64_t address) {
  const std::vector<uint64_t>* const known = own.load();
  return known != nullptr &&
         std::binary_search(known->begin(), known->end(), address);
}

}  // namespace gmb::preload
