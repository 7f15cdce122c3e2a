#ifndef GMB_CLIENT_PRELOAD_LOADED_LIBRARY_H_
#define GMB_CLIENT_PRELOAD_LOADED_LIBRARY_H_

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <initializer_list>

namespace gmb::preload {

// A library as the loader has it, to be read inside of dl_iterate_phdr's
// callback, or when it stays. Allocates nothing. Anything that does not lie in
// its segments is not there.
class LoadedLibrary {
 public:
  struct Range {
    uint64_t start = 0;
    uint64_t end = 0;
  };

  // `info` outlives it.
  explicit LoadedLibrary(const dl_phdr_info& info);

  // `visit` is called with each Range.
  template <typename Visit>
  void ForEachSegment(Visit visit) const {
    for (int i = 0; i < info_.dlpi_phnum; ++i) {
      const Elf64_Phdr& segment = info_.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const uint64_t start = info_.dlpi_addr + segment.p_vaddr;
      visit(Range{start, start + segment.p_memsz});
    }
  }

  // Of a function that it exports, in the version that is the usual one; null
  // when it has none of that name. Only for a library that has a table of
  // DT_GNU_HASH.
  [[nodiscard]] void* Find(const char* name) const;

  // `visit` is called with the name of each function, and of each other symbol,
  // whose address the library keeps, and with the place where it does. Names
  // have three characters at least.
  template <typename Visit>
  void ForEachKeptAddress(Visit visit) const {
    if (symbols_.start == 0 || names_.start == 0) return;
    for (const Range& table : {relocations_, calls_}) {
      const auto* const first =
          reinterpret_cast<const Elf64_Rela*>(table.start);
      const uint64_t count = (table.end - table.start) / sizeof(Elf64_Rela);
      for (uint64_t i = 0; i < count; ++i) {
        const char* const name = NameOf(first[i]);
        const uint64_t at = info_.dlpi_addr + first[i].r_offset;
        if (name != nullptr && Has(at, sizeof(void*)))
          visit(name, reinterpret_cast<const void* const*>(at));
      }
    }
  }

 private:
  // All of it, in one segment.
  [[nodiscard]] bool Has(uint64_t start, uint64_t bytes) const;
  [[nodiscard]] Range Table(uint64_t pointer, uint64_t bytes) const;
  void ReadDynamic(const Elf64_Dyn* first, uint64_t count);
  // Null: the symbol is another one, or not for others.
  [[nodiscard]] void* IfExported(uint64_t symbol, const char* name) const;
  // Null: it keeps no symbol's address.
  [[nodiscard]] const char* NameOf(const Elf64_Rela& one) const;

  const dl_phdr_info& info_;
  Range symbols_;  // of the first one
  Range names_;
  Range relocations_;
  Range calls_;
  Range hashes_;    // its head
  Range versions_;  // of the first symbol
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_LOADED_LIBRARY_H_
