#ifndef GMB_CLIENT_PRELOAD_KEPT_LEASES_H_
#define GMB_CLIENT_PRELOAD_KEPT_LEASES_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "client/preload/broker_link.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Leases that the program freed a moment ago, with no work left on them: it
// often asks for as much again at once, and a lease of its own costs a message
// and a mapping. And such as were asked for before it does, which may be on
// their way. Not thread-safe.
class KeptLeases {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // So long unused, a lease goes back to the broker.
  static constexpr auto kKeptFor = std::chrono::milliseconds(250);

  void Add(CUdevice device, const LeaseRange& lease, TimePoint now);
  // The one that was freed last of those that hold exactly so many bytes and
  // are mapped.
  [[nodiscard]] std::optional<LeaseRange> Take(CUdevice device, uint64_t bytes);
  // The oldest of those that hold exactly so many bytes and that their holder
  // maps, the first to come of those on their way.
  [[nodiscard]] std::optional<LeaseRange> TakeUnmapped(CUdevice device,
                                                       uint64_t bytes);
  [[nodiscard]] size_t CountUnmapped(CUdevice device, uint64_t bytes) const;
  // Those that were kept long enough.
  [[nodiscard]] std::vector<LeaseRange> TakeOld(TimePoint now);
  // Those that were only asked for: of the device, or long enough ago.
  [[nodiscard]] std::vector<LeaseRange> TakeAsked(CUdevice device);
  [[nodiscard]] std::vector<LeaseRange> TakeOldAsked(TimePoint now);
  // As many as hold so many bytes, or all of the device; the oldest first.
  [[nodiscard]] std::vector<LeaseRange> TakeFor(CUdevice device,
                                                uint64_t bytes);
  [[nodiscard]] std::vector<LeaseRange> TakeAll();

  [[nodiscard]] uint64_t HeldBytes(CUdevice device) const;
  [[nodiscard]] bool empty() const { return kept_.empty(); }

 private:
  struct Kept {
    CUdevice device = 0;
    LeaseRange lease;
    TimePoint freed_at;
  };

  template <typename Which>
  [[nodiscard]] std::vector<LeaseRange> TakeEach(Which which);

  std::list<Kept> kept_;  // in the order of freed_at
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_KEPT_LEASES_H_
