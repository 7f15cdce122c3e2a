#ifndef GMB_CLIENT_PRELOAD_FREED_BLOCKS_H_
#define GMB_CLIENT_PRELOAD_FREED_BLOCKS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/driver.h"
#include "client/preload/live_blocks.h"
#include "client/preload/ordered_frees.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The blocks that the program has freed and that are still to go back: in a
// stream's order, or once their device is synchronised. A thread that takes some
// has them in hand, and others who are out of memory wait for it. Thread-safe;
// the driver is asked about events under the lock, and not waited for.
class FreedBlocks {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // While it lives, a thread gives back what it has taken.
  class InHand {
   public:
    InHand(FreedBlocks* freed, uint64_t ticket)
        : freed_(freed), ticket_(ticket) {}
    InHand(InHand&& other) noexcept
        : freed_(std::exchange(other.freed_, nullptr)),
          ticket_(other.ticket_) {}
    ~InHand() {
      if (freed_ != nullptr) freed_->Gone(ticket_);
    }
    InHand& operator=(InHand&&) = delete;

   private:
    FreedBlocks* freed_;
    uint64_t ticket_;
  };
  struct Taken {
    std::vector<Block> blocks;         // whose device is to be synchronised
    std::vector<OrderedFree> ordered;  // with their events
    InHand in_hand;
  };

  FreedBlocks() = default;
  FreedBlocks(const FreedBlocks&) = delete;
  FreedBlocks& operator=(const FreedBlocks&) = delete;

  void Add(const OrderedFree& freed);
  // To go back once its device is synchronised.
  void Add(const Block& freed);
  // As OrderedFrees::TakeFit. Not during a capture.
  [[nodiscard]] std::optional<OrderedFree> TakeFit(const Driver& driver,
                                                   CUdevice device,
                                                   uint64_t held_bytes,
                                                   CUstream stream);
  // Those whose device is to be synchronised, and those that were kept long
  // enough; nothing when there is none. Not during a capture.
  [[nodiscard]] std::optional<Taken> TakeDue(const Driver& driver,
                                             TimePoint now);
  // As OrderedFrees::TakeSurplus; nothing when there is none. Not during a
  // capture. Under the lock, so that nobody takes a surplus twice, `surplus_of` is
  // asked what pools have too much of when so much of theirs waits.
  using SurplusOf = std::function<PoolBytes(const PoolBytes& waiting)>;
  [[nodiscard]] std::optional<Taken> TakeSurplus(const Driver& driver,
                                                 const SurplusOf& surplus_of,
                                                 uint64_t synchronisations);
  // Everything, after those that others have in hand. Waits for them up to
  // `until`, and not for such as begin meanwhile.
  [[nodiscard]] Taken TakeAll(TimePoint until);
  // They could not go back. An ordered one without its event goes back once its
  // device is synchronised.
  void PutBack(const Taken& taken);

  // Before a call that ends a context, and its events with it, which nothing
  // may touch from then on; null for any. Blocks that were freed there go back
  // with a Sweep after the call. See Captures::AwaitTurn. `lives`: it may go on.
  void ForgetEventsOf(const Driver& driver, CUcontext context, bool lives);
  // Before that: what is done needs no wait with the Sweep, whatever becomes of
  // the context. Not during a capture.
  void TakeDoneOf(const Driver& driver, CUcontext context);
  // The context did end, and all work on its memory.
  void Ended(const HomeContext& home);

 private:
  [[nodiscard]] InHand TakeTicket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Gone(uint64_t ticket);

  base::Mutex mu_;
  base::CondVar given_;
  // The tickets of the threads that give back.
  std::set<uint64_t> in_hand_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  OrderedFrees ordered_ ABSL_GUARDED_BY(mu_);
  // Freed while a capture was under way, or in the order of a context that is
  // gone.
  std::vector<Block> unordered_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_FREED_BLOCKS_H_
