#ifndef GMB_CLIENT_PRELOAD_ORDERED_FREES_H_
#define GMB_CLIENT_PRELOAD_ORDERED_FREES_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "client/preload/driver.h"
#include "client/preload/live_blocks.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// A block that was freed in a stream's order: it is free when the event is
// done, and on that stream from now on.
struct OrderedFree {
  Block block;
  CUstream stream = nullptr;
  CUcontext context = nullptr;  // of the event; current when it was freed
  CUevent event = nullptr;      // null when it is lost
  std::chrono::steady_clock::time_point freed_at;
  uint64_t synchronisations = 0;  // of the program, before it was freed
};

// Blocks that wait for their stream, and are kept a while for the next that
// asks for as much: programs allocate in a stream's order because it is cheap.
// Not thread-safe.
class OrderedFrees {
 public:
  // So long unused, a block goes back to the broker.
  static constexpr auto kKeptFor = std::chrono::seconds(1);

  void Add(const OrderedFree& freed) { waiting_.push_back(freed); }
  // One that holds so many bytes and may be used on `stream` now, without any
  // waiting of its own; none that another process has. Its event is the caller's
  // to destroy.
  [[nodiscard]] std::optional<OrderedFree> TakeFit(const Driver& driver,
                                                   CUdevice device,
                                                   uint64_t held_bytes,
                                                   CUstream stream);
  // Those that were kept long enough and are done, or whose event is lost.
  [[nodiscard]] std::vector<OrderedFree> TakeOld(
      const Driver& driver, std::chrono::steady_clock::time_point now);
  // Those that are done, and were freed before the program synchronised for that
  // time, as far as their pools have so much to give back.
  [[nodiscard]] std::vector<OrderedFree> TakeSurplus(const Driver& driver,
                                                     PoolBytes surplus,
                                                     uint64_t synchronisations);
  // The bytes that wait, of each pool.
  [[nodiscard]] PoolBytes HeldOfPools() const;
  [[nodiscard]] std::vector<OrderedFree> TakeAll();
  // Those whose event is of this context.
  [[nodiscard]] std::vector<OrderedFree> TakeOf(CUcontext context);
  // And of these the ones that are done.
  [[nodiscard]] std::vector<OrderedFree> TakeDoneOf(const Driver& driver,
                                                    CUcontext context);

 private:
  template <typename Which>
  std::vector<OrderedFree> Take(Which which);

  std::list<OrderedFree> waiting_;  // in the order of freed_at
};

// Whether an event's answer says that it has gone, with a context whose end was
// not seen here: how much of its work is done is not known then.
[[nodiscard]] bool IsLost(CUresult of_event);

// The bytes that a block keeps from others, rounding included.
[[nodiscard]] uint64_t HeldBytes(const Block& block);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_ORDERED_FREES_H_
