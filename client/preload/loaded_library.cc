// `gmb run`: what a loaded library says of itself.
#include "client/preload/loaded_library.h"

#include <cstring>
#include <initializer_list>

namespace gmb::preload {
namespace {

// The head of the table that DT_GNU_HASH has. Words of 64 bits follow, then for
// each bucket its first symbol, then for each symbol its hash, of which the
// lowest bit says that the bucket ends.
struct HashHead {
  uint32_t buckets;
  uint32_t first_symbol;
  uint32_t filter_words;
  uint32_t filter_shift;
};

uint32_t HashOf(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name)
    hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

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
  hashes_ = Table(value_of(DT_GNU_HASH), sizeof(HashHead));
  versions_ = Table(value_of(DT_VERSYM), sizeof(Elf64_Half));
}

void* LoadedLibrary::Find(const char* name) const {
  if (hashes_.start == 0 || symbols_.start == 0 || versions_.start == 0)
    return nullptr;
  const auto& head = *reinterpret_cast<const HashHead*>(hashes_.start);
  if (head.buckets == 0) return nullptr;
  const uint32_t hash = HashOf(name);
  const uint64_t buckets =
      hashes_.start + sizeof(head) + head.filter_words * uint64_t{8};
  const uint64_t chains = buckets + head.buckets * uint64_t{4};
  const auto word = [&](uint64_t at) -> uint32_t {
    return Has(at, 4) ? *reinterpret_cast<const uint32_t*>(at) : 0;
  };
  uint64_t symbol = word(buckets + hash % head.buckets * uint64_t{4});
  while (symbol >= head.first_symbol) {
    const uint64_t chain = chains + (symbol - head.first_symbol) * 4;
    if (!Has(chain, 4)) return nullptr;
    if ((word(chain) | 1) == (hash | 1)) {
      if (void* const found = IfExported(symbol, name)) return found;
    }
    if ((word(chain) & 1) != 0) return nullptr;
    ++symbol;
  }
  return nullptr;
}

void* LoadedLibrary::IfExported(uint64_t symbol, const char* name) const {
  constexpr Elf64_Half kHidden = 0x8000;  // an older version
  const uint64_t at = symbols_.start + symbol * sizeof(Elf64_Sym);
  const uint64_t version = versions_.start + symbol * sizeof(Elf64_Half);
  if (!Has(at, sizeof(Elf64_Sym)) || !Has(version, sizeof(Elf64_Half)))
    return nullptr;
  const auto& one = *reinterpret_cast<const Elf64_Sym*>(at);
  const size_t size = std::strlen(name) + 1;
  if (one.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(one.st_info) != STT_FUNC ||
      one.st_name + size > names_.end - names_.start ||
      std::memcmp(reinterpret_cast<const char*>(names_.start) + one.st_name,
                  name, size) != 0 ||
      (*reinterpret_cast<const Elf64_Half*>(version) & kHidden) != 0) {
    return nullptr;
  }
  return reinterpret_cast<void*>(info_.dlpi_addr + one.st_value);
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
