// `gmb run`: libraries whose calls of the driver do not come to this one.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "client/preload/find_symbol.h"
#include "client/preload/gated.h"
#include "client/preload/known_functions.h"
#include "client/preload/loaded_library.h"
#include "client/preload/own_libraries.h"
#include "client/preload/past_the_gate.h"

namespace gmb::preload {
namespace {

// A place where a library keeps the address of a gated function, or of one that
// looks functions up.
struct Target {
  const void* const* at;
  size_t library;  // where its name is, in Looks::names
  bool looks_up;
};

// A list of what is found while the loader's lock is held. Nothing is allocated
// then: another thread may wait for that lock with the allocator's. Finds
// without room are counted, and looked for again with more.
template <typename T>
class Found {
 public:
  void Add(const T* first, size_t count) {
    if (wanted_ + count <= items_.size())
      std::copy(first, first + count, items_.data() + wanted_);
    wanted_ += count;
  }
  void Clear() { wanted_ = 0; }
  [[nodiscard]] bool complete() const { return wanted_ <= items_.size(); }
  // Some more than that: libraries come and go.
  void MakeRoom() { items_.resize(std::max(items_.size(), 2 * wanted_)); }

  [[nodiscard]] size_t size() const { return std::min(wanted_, items_.size()); }
  [[nodiscard]] const T* begin() const { return items_.data(); }
  [[nodiscard]] const T* end() const { return items_.data() + size(); }

 private:
  std::vector<T> items_;
  size_t wanted_ = 0;
};

struct Looks {
  bool any = false;
  bool lookups_are_ours = false;
  unsigned long long adds = 0;  // loaded, and unloaded, by then
  unsigned long long subs = 0;
  Found<Target> targets;
  Found<LoadedLibrary::Range> driver;
  Found<LoadedLibrary::Range> loader;  // the C library, which looks up
  Found<char> names;  // of the targets' libraries, each with its end
  const Target* past_us = nullptr;

  void Clear() {
    targets.Clear();
    driver.Clear();
    loader.Clear();
    names.Clear();
  }
  [[nodiscard]] bool complete() const {
    return targets.complete() && driver.complete() && loader.complete() &&
           names.complete();
  }
  void MakeRoom() {
    targets.MakeRoom();
    driver.MakeRoom();
    loader.MakeRoom();
    names.MakeRoom();
  }
};

bool IsFile(const char* path, const char* begin) {
  const char* const slash = std::strrchr(path, '/');
  const char* const file = slash == nullptr ? path : slash + 1;
  return std::strncmp(file, begin, std::strlen(begin)) == 0;
}
bool IsDriver(const char* path) { return IsFile(path, "libcuda.so"); }
// Or its part of before 2.34.
bool IsLoader(const char* path) {
  return IsFile(path, "libc.so") || IsFile(path, "libdl.so");
}

// Whether its calls have to come here, if it is a function of the driver. One
// that is not known would be behind a tripwire, had it been looked up.
bool HasToComeHere(const char* name) {
  return IsNameOfDriver(name) && (IsGatedName(name) || !IsKnownSymbol(name));
}

// The CUDA runtime, which libraries have in them, looks up all that it calls.
bool LooksUp(const char* name) {
  return std::strcmp(name, "dlsym") == 0 || std::strcmp(name, "dlvsym") == 0;
}

// Whether lookups come here at all: not where this code is without its dlsym.
bool AreLookupsOurs() {
  return RealSymbol(RTLD_DEFAULT, "dlsym") !=
         reinterpret_cast<void*>(RealDlsym());
}

// With the loader's lock.
int ReadLibrary(dl_phdr_info* info, size_t /*size*/, void* data) {
  auto* const looks = static_cast<Looks*>(data);
  looks->adds = info->dlpi_adds;
  looks->subs = info->dlpi_subs;
  const LoadedLibrary library(*info);
  if (IsDriver(info->dlpi_name)) {
    library.ForEachSegment(
        [&](LoadedLibrary::Range segment) { looks->driver.Add(&segment, 1); });
    return 0;
  }
  if (IsLoader(info->dlpi_name)) {
    library.ForEachSegment(
        [&](LoadedLibrary::Range segment) { looks->loader.Add(&segment, 1); });
    return 0;
  }
  const bool may_look_up =
      !looks->lookups_are_ours || OwnLibraries::Has(info->dlpi_addr);
  bool named = false;
  size_t name = 0;
  library.ForEachKeptAddress([&](const char* symbol, const void* const* at) {
    const bool looks_up = LooksUp(symbol);
    if (looks_up ? may_look_up : !HasToComeHere(symbol)) return;
    if (!named) {
      name = looks->names.size();
      looks->names.Add(info->dlpi_name, std::strlen(info->dlpi_name) + 1);
      named = true;
    }
    const Target target{at, name, looks_up};
    looks->targets.Add(&target, 1);
  });
  return 0;
}

void ReadTargets(Looks* looks) {
  for (const Target& target : looks->targets) {
    const auto value = reinterpret_cast<uint64_t>(
        __atomic_load_n(target.at, __ATOMIC_RELAXED));
    for (const LoadedLibrary::Range& range :
         target.looks_up ? looks->loader : looks->driver) {
      if (value >= range.start && value < range.end) looks->past_us = &target;
    }
  }
}

// Called for the first library alone, with the loader's lock: none is unloaded
// while their targets are read. Whether the list is still true.
int ReadIfSame(dl_phdr_info* library, size_t /*size*/, void* data) {
  auto* const looks = static_cast<Looks*>(data);
  const bool same = looks->any && looks->complete() &&
                    library->dlpi_adds == looks->adds &&
                    library->dlpi_subs == looks->subs;
  if (same) ReadTargets(looks);
  return same ? 1 : 2;
}

std::string WhyOf(const Looks& looks) {
  const char* const name = looks.names.begin() + looks.past_us->library;
  return std::string(*name == '\0' ? "the program" : name) +
         (looks.past_us->looks_up ? " looks functions up"
                                  : " calls the driver") +
         " past the library of `gmb run`";
}

}  // namespace

const char* BoundPastUs() {
  static Looks& looks = *new Looks;
  if (!looks.any) looks.lookups_are_ours = AreLookupsOurs();
  // Another library may come between the two, and there may be no room yet; then
  // once more.
  for (int tries = 0; tries < 4 && looks.past_us == nullptr; ++tries) {
    if (dl_iterate_phdr(ReadIfSame, &looks) == 1) break;
    if (looks.any && !looks.complete()) looks.MakeRoom();
    looks.any = true;
    looks.Clear();
    dl_iterate_phdr(ReadLibrary, &looks);
  }
  if (looks.past_us == nullptr) return nullptr;
  static const std::string& why = *new std::string(WhyOf(looks));
  return why.c_str();
}

}  // namespace gmb::preload
