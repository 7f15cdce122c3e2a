// `gmb run`: ranks of one communicator. A rank whose memory is away keeps the
// others spinning on the GPU, whose memory then cannot be taken either: a
// process that is one of several ranks is parked with its group, or never. Where
// nobody named a group for it, the communicator's id does.
#include "client/preload/ranks.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "client/preload/find_symbol.h"
#include "client/preload/program_gate.h"
#include "client/preload/settings.h"

// As nccl.h has them; only their sizes matter here.
using Communicator = void*;
struct UniqueId {
  std::array<char, 128> bytes;
};

namespace {

constexpr int kSystemError = 2;  // ncclSystemError

// The functions that programs have looked up: the last one of each name.
std::array<std::atomic<void*>, 3> looked_up{};

size_t PlaceOf(const char* name) {
  constexpr size_t kCommon = sizeof("ncclCommInitRank") - 1;
  if (std::strncmp(name, "ncclCommInitRank", kCommon) != 0)
    return looked_up.size();
  if (name[kCommon] == '\0') return 0;
  return name[kCommon] == 'C' ? 1 : 2;
}

// NCCL is often loaded by a library alone, for itself: the function is looked
// for where the caller finds it, or is the one that was looked up.
void* RealFor(void* caller, const char* name, void* ours) {
  Dl_info where{};
  void* found = nullptr;
  if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr) {
    void* const library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = gmb::preload::RealSymbol(library, name);
  }
  if (found == nullptr || found == ours)
    found = looked_up[PlaceOf(name)].load(std::memory_order_acquire);
  if (found == nullptr) found = gmb::preload::RealSymbol(RTLD_NEXT, name);
  if (found != nullptr) return found;
  void* const nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return nccl == nullptr ? nullptr : gmb::preload::RealSymbol(nccl, name);
}

// Of the communicator with that id, on each of its ranks.
std::string GroupOf(const UniqueId& id) {
  constexpr uint64_t kPrime = 0x100000001b3;  // as FNV
  uint64_t one = 0xcbf29ce484222325;
  uint64_t two = 0x6c62272e07bb0142;
  for (const char byte : id.bytes) {
    one = (one ^ static_cast<unsigned char>(byte)) * kPrime;
    two = (two * kPrime) ^ static_cast<unsigned char>(byte);
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "nccl-%016" PRIx64 "%016" PRIx64, one,
                two);
  return text.data();
}

// A process of several communicators would have to be parked with the ranks of
// all of them, and which those are nobody here knows. One of the name that its
// person gave is of that.
void NoteRanks(int ranks, const UniqueId* id) {
  if (ranks <= 1 || !gmb::preload::TheSettings().group.empty()) return;
  static std::mutex mutex;
  static std::string first;  // of which NCCL may have several ranks here
  const std::lock_guard lock(mutex);
  std::string group = id == nullptr ? "" : GroupOf(*id);
  if (first.empty()) first = group;
  if (group.empty() || group != first) {
    gmb::preload::ProgramGate::NeverPark(
        "it is one of several ranks of more than one communicator, in no group "
        "(gmb run --group)");
    return;
  }
  gmb::preload::ProgramGate::JoinRanks(first.c_str(),
                                       static_cast<unsigned>(ranks));
}

template <typename... Arguments>
int Init(int ranks, const UniqueId* id, int (*ours)(Arguments...),
         const char* name, void* caller, Arguments... arguments) {
  NoteRanks(ranks, id);
  void* const real = RealFor(caller, name, reinterpret_cast<void*>(ours));
  return real == nullptr
             ? kSystemError
             : reinterpret_cast<int (*)(Arguments...)>(real)(arguments...);
}

}  // namespace

void gmb::preload::NoteRealOfNccl(const char* name, void* real, void* ours) {
  const size_t place = PlaceOf(name);
  if (place < looked_up.size() && real != ours)
    looked_up[place].store(real, std::memory_order_release);
}

#define GMB_RANKS extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
GMB_RANKS int ncclCommInitRank(Communicator* communicator, int ranks,
                               UniqueId id, int rank) {
  return Init(ranks, &id, &ncclCommInitRank, __func__,
              __builtin_return_address(0), communicator, ranks, id, rank);
}

GMB_RANKS int ncclCommInitRankConfig(Communicator* communicator, int ranks,
                                     UniqueId id, int rank, void* config) {
  return Init(ranks, &id, &ncclCommInitRankConfig, __func__,
              __builtin_return_address(0), communicator, ranks, id, rank,
              config);
}

GMB_RANKS int ncclCommInitRankScalable(Communicator* communicator, int ranks,
                                       int rank, int ids, UniqueId* id,
                                       void* config) {
  return Init(ranks, ids > 0 ? id : nullptr, &ncclCommInitRankScalable,
              __func__, __builtin_return_address(0), communicator, ranks, rank,
              ids, id, config);
}
// NOLINTEND(readability-identifier-naming)
