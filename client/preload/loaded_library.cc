// `gmb run`: what a loaded library says of itself.
#include "client/preload/loaded_library.h"

#include <initializer_list>

namespace gmb::preload {

LoadedLibrary::LoadedLibrary(const dl_phdr_info& info) : info_(info) {
  for (int i = 0; i < info_.dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = info_.dlpi_phdr[i];
    const uint64_t at = info_.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC && Has(at, segment.p_memsz))
      ReadDynamic(reinterpret_cast<const Elf64_Dyn*>(at),
                  segment.p_memsz / sizeof(Elf64_Dyn));
  }
}

bool LoadedLibrary::Has(uint64_t start, uint64_t bytes) const {
  bool found = false;
  ForEachSegment([&](Range segment) {
    found = found || (start >= segment.start && start <= segment.end &&
                      bytes <= segment.end - start);
  });
  return found;
}

// The loader makes addresses of a dynamic section's pointers, but not where that
// section is read-only: there they are offsets still.
LoadedLibrary::Range LoadedLibrary::Table(uint64_t pointer,
                                          uint64_t bytes) const {
  if (bytes == 0) return {};
  for (const uint64_t start : {pointer, info_.dlpi_addr + pointer}) {
    if (Has(start, bytes)) return {start, start + bytes};
  }
  return {};
}

void LoadedLibrary::ReadDynamic(const Elf64_Dyn* first, uint64_t count) {
  const auto value_of = [&](Elf64_Sxword tag) -> uint64_t {
    for (uint64_t i = 0; i < count && first[i].d_tag != DT_NULL; ++i) {
      if (first[i].d_tag == tag) return first[i].d_un.d_ptr;
    }
    return 0;
  };
  // How many symbols there are it does not say: each is looked at by itself.
  symbols_ = Table(value_of(DT_SYMTAB), sizeof(Elf64_Sym));
  names_ = Table(value_of(DT_STRTAB), value_of(DT_STRSZ));
  relocations_ = Table(value_of(DT_RELA), value_of(DT_RELASZ));
  calls_ = Table(value_of(DT_JMPREL), value_of(DT_PLTRELSZ));
}

const char* LoadedLibrary::NameOf(const Elf64_Rela& one) const {
  const uint64_t type = ELF64_R_TYPE(one.r_info);
  if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT &&
      type != R_X86_64_64) {
    return nullptr;
  }
  const uint64_t at =
      symbols_.start + ELF64_R_SYM(one.r_info) * sizeof(Elf64_Sym);
  if (!Has(at, sizeof(Elf64_Sym))) return nullptr;
  const uint64_t name = reinterpret_cast<const Elf64_Sym*>(at)->st_name;
  if (name + 3 >= names_.end - names_.start) return nullptr;
  return reinterpret_cast<const char*>(names_.start + name);
}

}  // namespace gmb::preload
