#ifndef GMB_CLIENT_PRELOAD_VIRTUAL_HANDLES_H_
#define GMB_CLIENT_PRELOAD_VIRTUAL_HANDLES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "client/preload/broker_link.h"
#include "client/preload/ipc_handle.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Memory that a program made by cuMemCreate and that is a lease. The handle
// that it has is a name of ours; the driver's handles are those of the slabs.
struct VirtualHandle {
  // A slab as the driver knows it in this process.
  struct Slab {
    CUmemGenericAllocationHandle imported = 0;
    uint64_t bytes = 0;
  };

  uint64_t bytes = 0;
  CUmemAllocationProp properties{};   // as asked for
  uint32_t references = 1;            // the program's
  std::optional<LeaseRange> lease;    // once it is granted
  std::optional<LeaseName> known_as;  // to other processes, for OfLease
  bool attached = false;              // another process's
  bool imported = false;              // of these, one that the program has
  std::vector<Slab> slabs;            // in order; none while it is away
  std::set<uint64_t> mappings;        // their starts
};

// One place where such memory is mapped, or will be once it is back.
struct VirtualMapping {
  uint64_t start = 0;
  uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  std::vector<CUmemAccessDesc> access;  // one for each location
};

// The program's handles and where they are mapped. Not thread-safe; knows no
// driver. Pointers are good until the next change.
class VirtualHandles {
 public:
  using Name = CUmemGenericAllocationHandle;

  // Whether a handle is one of ours, or was: the driver's are addresses, which
  // never begin so.
  [[nodiscard]] static bool IsOurs(Name name) {
    return (name >> kCounterBits) == kTag;
  }

  [[nodiscard]] Name Add(uint64_t bytes, const CUmemAllocationProp& properties);
  // Null when it has neither references nor mappings any more.
  [[nodiscard]] VirtualHandle* Find(Name name);
  // Null when the program has no reference to it.
  [[nodiscard]] VirtualHandle* FindReferenced(Name name);
  // Whether nobody has it any more; it stays until it is taken, and may be
  // somebody's again.
  [[nodiscard]] bool IsUnused(Name name) const;
  // Of such a one its lease.
  [[nodiscard]] std::optional<LeaseRange> LeaseIfUnused(Name name) const;
  void UseAgain(Name name, const CUmemAllocationProp& properties);
  // The handle itself, if nobody has it any more: it is to go back.
  [[nodiscard]] std::optional<VirtualHandle> TakeUnused(Name name);
  // Although somebody has it; it is of no lease yet.
  void Drop(Name name) { handles_.erase(name); }

  // For OfLease, until the handle is taken or has another lease's name. Does
  // nothing where it is taken already.
  void NoteLease(Name name, const LeaseName& lease);
  // The handle of a lease that processes share, if somebody here has it.
  [[nodiscard]] std::optional<Name> OfLease(const LeaseName& lease) const;

  // False when another mapping is there.
  [[nodiscard]] bool AddMapping(Name name, uint64_t start);
  // Of a mapping that is there. Its handle.
  Name RemoveMapping(uint64_t start);

  // The mapping that the address is in, or null.
  [[nodiscard]] const VirtualMapping* At(uint64_t address) const;
  // Those that a range meets, in order. `whole` is false when one of them is
  // not wholly in it.
  [[nodiscard]] std::vector<VirtualMapping> In(uint64_t start, uint64_t bytes,
                                               bool* whole) const;
  [[nodiscard]] std::vector<VirtualMapping> Of(Name name) const;
  // The devices that may have work with it.
  [[nodiscard]] std::set<CUdevice> UsersOf(Name name) const;
  // Notes what the driver was told about the mappings in a range.
  void SetAccess(uint64_t start, uint64_t bytes, const CUmemAccessDesc* access,
                 size_t count);

 private:
  static constexpr unsigned kCounterBits = 40;
  static constexpr uint64_t kTag = 0x676d62;  // "gmb"

  void ForgetLease(Name name, const VirtualHandle& handle);

  std::map<Name, VirtualHandle> handles_;
  std::map<uint64_t, VirtualMapping> mappings_;  // by start
  std::map<LeaseName, Name> of_leases_;
  uint64_t last_ = 0;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_VIRTUAL_HANDLES_H_
