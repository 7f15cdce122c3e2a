// `gmb run`: libraries whose calls of the driver do not come to this one.
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "client/preload/gated.h"
#include "client/preload/past_the_gate.h"

namespace gmb::preload {
namespace {

// A place where a library keeps the address of a gated function.
struct Target {
  const void* const* at;
  std::string library;
};

struct Range {
  uint64_t start = 0;
  uint64_t end = 0;
};

struct Looks {
  bool any = false;
  unsigned long long adds = 0;  // loaded, and unloaded, by then
  unsigned long long subs = 0;
  std::vector<Target> targets;
  std::vector<Range> driver;
  std::string found;  // the library, or empty
};

bool IsDriver(const char* name) {
  const char* const slash = std::strrchr(name, '/');
  const char* const file = slash == nullptr ? name : slash + 1;
  return std::strncmp(file, "libcuda.so", std::strlen("libcuda.so")) == 0;
}

// What a library's dynamic section says. The linker has made addresses of the
// pointers, but for those of the kernel's own page.
struct Dynamic {
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  uint64_t names_bytes = 0;
  const Elf64_Rela* relocations = nullptr;
  uint64_t relocations_bytes = 0;
  const Elf64_Rela* calls = nullptr;
  uint64_t calls_bytes = 0;
};

Dynamic ReadDynamic(const Elf64_Dyn* entry) {
  Dynamic found;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const auto at = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        found.symbols = reinterpret_cast<const Elf64_Sym*>(at);
        break;
      case DT_STRTAB:
        found.names = reinterpret_cast<const char*>(at);
        break;
      case DT_STRSZ:
        found.names_bytes = at;
        break;
      case DT_RELA:
        found.relocations = reinterpret_cast<const Elf64_Rela*>(at);
        break;
      case DT_RELASZ:
        found.relocations_bytes = at;
        break;
      case DT_JMPREL:
        found.calls = reinterpret_cast<const Elf64_Rela*>(at);
        break;
      case DT_PLTRELSZ:
        found.calls_bytes = at;
        break;
      default:
        break;
    }
  }
  return found;
}

bool KeepsAnAddress(uint64_t type) {
  return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT ||
         type == R_X86_64_64;
}

void AddTargets(const dl_phdr_info& library, const Dynamic& dynamic,
                const Elf64_Rela* first, uint64_t bytes, Looks* looks) {
  if (first == nullptr) return;
  for (uint64_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) {
    const Elf64_Rela& one = first[i];
    if (!KeepsAnAddress(ELF64_R_TYPE(one.r_info))) continue;
    const Elf64_Sym& symbol = dynamic.symbols[ELF64_R_SYM(one.r_info)];
    if (symbol.st_name + 3 >= dynamic.names_bytes) continue;
    const char* const name = dynamic.names + symbol.st_name;
    const bool of_driver =
        name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
    if (!of_driver || !IsGatedName(name)) continue;
    const uint64_t at = library.dlpi_addr + one.r_offset;
    looks->targets.push_back(
        {reinterpret_cast<const void* const*>(at), library.dlpi_name});
  }
}

void AddSegments(const dl_phdr_info& library, std::vector<Range>* ranges) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = library.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t start = library.dlpi_addr + segment.p_vaddr;
    ranges->push_back({start, start + segment.p_memsz});
  }
}

int ReadLibrary(dl_phdr_info* library, size_t /*size*/, void* data) {
  auto* const looks = static_cast<Looks*>(data);
  looks->adds = library->dlpi_adds;
  looks->subs = library->dlpi_subs;
  if (IsDriver(library->dlpi_name)) {
    AddSegments(*library, &looks->driver);
    return 0;
  }
  if (std::strncmp(library->dlpi_name, "linux-vdso", 10) == 0) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    const Dynamic dynamic = ReadDynamic(reinterpret_cast<const Elf64_Dyn*>(
        library->dlpi_addr + segment.p_vaddr));
    if (dynamic.symbols == nullptr || dynamic.names == nullptr) continue;
    AddTargets(*library, dynamic, dynamic.relocations,
               dynamic.relocations_bytes, looks);
    AddTargets(*library, dynamic, dynamic.calls, dynamic.calls_bytes, looks);
  }
  return 0;
}

void ReadTargets(Looks* looks) {
  for (const Target& target : looks->targets) {
    const auto value = reinterpret_cast<uint64_t>(
        __atomic_load_n(target.at, __ATOMIC_RELAXED));
    for (const Range& range : looks->driver) {
      if (value >= range.start && value < range.end)
        looks->found = target.library.empty() ? "the program" : target.library;
    }
  }
}

// Called for the first library alone, with the linker's lock: none is unloaded
// while their targets are read. Whether the list is still true.
int ReadIfSame(dl_phdr_info* library, size_t /*size*/, void* data) {
  auto* const looks = static_cast<Looks*>(data);
  const bool same = looks->any && library->dlpi_adds == looks->adds &&
                    library->dlpi_subs == looks->subs;
  if (same) ReadTargets(looks);
  return same ? 1 : 2;
}

}  // namespace

const char* BoundPastUs() {
  static Looks& looks = *new Looks;
  // Another library may come between the two; then once more.
  for (int tries = 0; tries < 3 && looks.found.empty(); ++tries) {
    if (dl_iterate_phdr(ReadIfSame, &looks) == 1) break;
    looks.any = true;
    looks.targets.clear();
    looks.driver.clear();
    dl_iterate_phdr(ReadLibrary, &looks);
  }
  if (looks.found.empty()) return nullptr;
  static const std::string& why = *new std::string(
      looks.found + " calls the driver past the library of `gmb run`");
  return why.c_str();
}

}  // namespace gmb::preload
