#ifndef GMB_CLIENT_PRELOAD_LEASE_RETURNS_H_
#define GMB_CLIENT_PRELOAD_LEASE_RETURNS_H_

#include <atomic>
#include <cstdint>

#include "client/preload/allocations.h"
#include "client/preload/broker_link.h"
#include "client/preload/device_names.h"
#include "client/preload/driver.h"
#include "client/preload/kept_memory.h"
#include "client/preload/lease_exports.h"
#include "client/preload/live_blocks.h"

namespace gmb::preload {

// How memory goes back that nobody uses any more: to the chunk that it is part
// of, to what is kept for a moment, or to the broker. Thread-safe.
class LeaseReturns {
 public:
  // All outlive it.
  struct Parts {
    const Driver& driver;
    DeviceNames& names;
    BrokerLink& broker;
    Allocations& allocations;
    LeaseExports& exports;
    KeptMemory& kept;
  };
  explicit LeaseReturns(const Parts& parts) : parts_(parts) {}
  LeaseReturns(const LeaseReturns&) = delete;
  LeaseReturns& operator=(const LeaseReturns&) = delete;

  // A block that was taken from the books; all work that uses it must be done:
  // nothing here waits for the GPU. A lease is kept for a moment, if the program
  // may soon ask for as much; one that is away, or lost, is not.
  enum class Then { kRelease, kKeep };
  void GiveBack(const Block& block, Then then = Then::kRelease);
  void Release(const LeaseRange& lease);

  // Leases, and blocks of chunks that stay, so far: what was refused before may
  // be had now.
  [[nodiscard]] uint64_t count() const { return count_.load(); }

 private:
  const Parts parts_;
  std::atomic<uint64_t> count_ = 0;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_LEASE_RETURNS_H_
