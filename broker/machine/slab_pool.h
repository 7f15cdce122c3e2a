#ifndef GMB_BROKER_MACHINE_SLAB_POOL_H_
#define GMB_BROKER_MACHINE_SLAB_POOL_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "broker/machine/ready_stock.h"
#include "broker/machine/returned_slabs.h"
#include "broker/machine/slab.h"
#include "quota/units.h"

namespace gmb::broker {

// A slab that a tenant has held, to be destroyed; its holder is charged if it
// turns out to be still held. nullopt: no client ever saw it.
struct Condemned {
  Slab slab;
  std::optional<quota::TenantId> last_holder;
};

// How a lease's bytes are to come about, in address order: `taken` slabs first,
// then slabs to create; `destroy` must be destroyed before those creates.
struct TakePlan {
  std::vector<Slab> taken;
  std::vector<uint64_t> create_bytes;
  std::vector<Condemned> destroy;
};

// The parts of a device pool; their sum is the capacity.
struct Composition {
  // As set; more while the pool holds more of the device than that: it was made
  // smaller, or what is unreturned reaches into the headroom.
  uint64_t capacity_bytes = 0;
  uint64_t granted_bytes = 0;   // with the bytes of leases still being made
  uint64_t returned_bytes = 0;  // given back, kept for the same tenant
  uint64_t ready_bytes = 0;     // with the one being created
  uint64_t float_bytes = 0;
  uint64_t scrubbing_bytes = 0;
  uint64_t unreturned_bytes = 0;
  uint64_t missing_bytes = 0;
  uint64_t slabs = 0;  // alive, wherever they are
};

// Which slab of one device pool is where: ready, granted, returned, scrubbing.
//
// Every lease is floor(bytes / S) slabs of the ready size S and one tail, so
// the number of its handles is known beforehand and slabs of size S are
// interchangeable. Tails of sizes that are asked for, and of sizes that double,
// are kept ready too. A slab that a tenant has held serves that tenant again or
// is destroyed; it never becomes ready.
//
// A value without threads, locks or devices: the core decides under its lock,
// the device worker does. Sizes are bytes and multiples of the granularity.
class SlabPool {
 public:
  struct Options {
    uint64_t ready_slab_bytes;
    uint64_t float_target_bytes;
    uint64_t max_ready_slabs = 4096;  // handles kept ahead at most
    // Of them, tails. None of memory that is created in no time.
    uint64_t max_ready_tails = 0;
    // The least of those that are ready before anybody has asked for them; the
    // others are twice it, four times and so on. 0: none.
    uint64_t least_standing_bytes = 0;
    // Handles kept for the same tenant at most; what comes back beyond them is
    // destroyed at once.
    uint64_t max_returned_slabs = 512;
    // ipc: the driver maps one allocation wherever it likes, so a lease is one
    // slab of its size, and nothing is held ready.
    bool one_slab_a_lease = false;
    quota::Nanoseconds reuse_for = std::chrono::seconds(
        5);  // how long returned slabs wait for their tenant
  };
  // For a pool of this size: ready slabs of up to 1 GiB, small enough that the
  // pool has at least 32; a float of one ready slab, so that any tail fits. One
  // that may grow to `largest_bytes` has at most 1024 then.
  [[nodiscard]] static Options DefaultOptions(uint64_t pool_bytes,
                                              uint64_t granularity_bytes,
                                              uint64_t largest_bytes = 0);

  explicit SlabPool(Options options)
      : options_(options),
        ready_({.whole_bytes = options.ready_slab_bytes,
                .most_slabs = options.max_ready_slabs,
                .most_tails = options.max_ready_tails,
                .least_standing_bytes = options.least_standing_bytes,
                .step_bytes = options.float_target_bytes}) {}

  [[nodiscard]] uint64_t HandlesFor(uint64_t bytes) const;

  // Plans a lease that the quota engine has granted; its bytes count as
  // granted from here on. `destroy` bytes count as scrubbing until Destroyed.
  [[nodiscard]] TakePlan Take(quota::TenantId tenant, uint64_t bytes);
  // A slab of a lease that another broker has granted.
  void Adopt(const Slab& slab) {
    granted_ += slab.bytes;
    ++granted_slabs_;
  }
  // One of the slabs that Take, or a further attempt, asked for is there.
  void Created(uint64_t bytes) { creating_ -= bytes; }
  // The tail of a granted lease could not be created: its bytes are free again.
  void CreateFailed(uint64_t bytes);
  // A ready slab to give up so that a create may be tried again; nullopt: none.
  [[nodiscard]] std::optional<Condemned> GiveUpReady();
  // A lease's slabs come back, to serve that tenant again until `expires`. False:
  // as many as may wait for their tenants do; they are to be condemned.
  bool Return(quota::TenantId tenant, const std::vector<Slab>& slabs,
              quota::Instant expires);
  // A lease's slabs come back, to be destroyed at once.
  [[nodiscard]] std::vector<Condemned> Condemn(quota::TenantId tenant,
                                               const std::vector<Slab>& slabs);
  void Destroyed(uint64_t bytes);
  // Condemned slabs that were not destroyed after all: they are what they were,
  // and wait for their tenants anew.
  void Spared(const std::vector<Condemned>& slabs, quota::Instant now);

  // One step that keeps ready and float filled, or nullopt when all is well:
  // destroy these, and create ready slabs of these sizes, in turn. While bytes
  // are missing somebody outside takes what is freed: then nothing is destroyed
  // without need, and returned slabs wait on for their tenants.
  struct Refill {
    std::vector<Condemned> destroy;
    std::vector<uint64_t> create_bytes;
  };
  [[nodiscard]] std::optional<Refill> NextRefill(quota::Instant now);
  // One step of a pool that was made smaller and still holds slabs beyond its
  // capacity which no lease has: destroy these. Those bytes are nobody's to
  // wait for.
  [[nodiscard]] std::optional<Refill> NextShrink();
  void ReadyCreated(const Slab& slab);
  void ReadyFailed(uint64_t bytes);

  void SetCapacity(uint64_t bytes) { capacity_ = bytes; }
  // Bytes of the pool that the device does not have.
  struct Lost {
    uint64_t unreturned_bytes = 0;
    uint64_t missing_bytes = 0;
    // Unreturned, but their tenant is no more: missing, though nobody outside
    // took them.
    uint64_t orphaned_bytes = 0;
  };
  void SetLost(const Lost& lost) { lost_ = lost; }

  [[nodiscard]] Composition composition() const;
  [[nodiscard]] const Options& options() const { return options_; }
  // When the next returned slab is due for destruction.
  [[nodiscard]] std::optional<quota::Instant> NextExpiry() const;

 private:
  // Of the step before it: tails that are wanted and not there.
  void RefillTails(Refill* refill);

  // Of the capacity, with what is both promised and still being scrubbed.
  [[nodiscard]] uint64_t UsedBytes() const;
  // Below zero while bytes are promised that are still being scrubbed; these are
  // `coming_bytes` where they are as good as float.
  [[nodiscard]] int64_t Float(uint64_t coming_bytes = 0) const;
  Condemned PopReturned();
  void CoverPromises(TakePlan* plan);

  const Options options_;
  uint64_t capacity_ = 0;
  Lost lost_;
  uint64_t granted_ = 0;
  uint64_t granted_slabs_ = 0;
  uint64_t creating_ = 0;  // of the granted ones, not there yet
  uint64_t scrubbing_ = 0;
  uint64_t creating_ready_ = 0;  // bytes of ready slabs on their way
  ReadyStock ready_;
  ReturnedSlabs returned_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SLAB_POOL_H_
