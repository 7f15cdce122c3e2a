#ifndef GMB_CLIENT_PRELOAD_SWEEPER_H_
#define GMB_CLIENT_PRELOAD_SWEEPER_H_

#include <vector>

#include "base/mutex.h"
#include "client/preload/allocations.h"
#include "client/preload/captures.h"
#include "client/preload/contexts.h"
#include "client/preload/driver.h"
#include "client/preload/freed_blocks.h"
#include "client/preload/kept_memory.h"
#include "client/preload/lease_returns.h"
#include "client/preload/ordered_frees.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Gives back what the program has freed, once its device is done with it. No
// capture is under way meanwhile. Thread-safe.
class Sweeper {
 public:
  // All outlive it.
  struct Parts {
    const Driver& driver;
    Captures& captures;
    Contexts& contexts;
    Allocations& allocations;
    FreedBlocks& freed;
    KeptMemory& kept;
    LeaseReturns& returns;
  };
  explicit Sweeper(const Parts& parts) : parts_(parts) {}
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Gives back what can go back now and could not before, and what was kept
  // long enough. Waits for the device only where something was freed during a
  // capture, or in a context that has ended.
  void Sweep();
  // The same for all that this library still keeps; false when that was
  // nothing, or cannot be now. Waits for the streams that it was freed on, and
  // for other threads that give back, for at most 2 s.
  bool ReleaseKept();
  // Gives back what pools hold above their thresholds, as far as the driver would
  // have given it back when the program synchronised last. Waits for no work.
  void GiveSurplusBack();
  // Gives back what is done of that which the program freed of the pool, down to
  // so many bytes; with none all else that is kept, too. Waits for no work: a
  // kernel may wait for this thread.
  void Trim(CUmemoryPool pool, uint64_t bytes_to_keep);

 private:
  void GiveAllBack();
  void GiveBack(const std::vector<OrderedFree>& freed);
  // The caller has its SynchronizingTurn.
  void GiveReservesBack();
  // False when that cannot be. Takes the events away that are lost.
  [[nodiscard]] bool Await(FreedBlocks::Taken* taken);

  const Parts parts_;
  // A program reads blocks that a thread has in hand as their pools' until they have
  // gone back: a second thread that gives back a surplus returns after that. Taken
  // before a turn, which is not waited for with it.
  base::Mutex giving_surplus_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SWEEPER_H_
