#ifndef GMB_CLIENT_PRELOAD_CREATE_RUN_H_
#define GMB_CLIENT_PRELOAD_CREATE_RUN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// How many handles are worth asking for before the program does: it makes many
// of the same size in a row when it grows, and each is a message to the broker
// and back. Not thread-safe.
class CreateRun {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr size_t kMostHandles = 16;
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  // A pause of this length ends a run.
  static constexpr auto kPause = std::chrono::milliseconds(250);
  // So long nothing is asked for after a refusal.
  static constexpr auto kAfterRefusal = std::chrono::seconds(1);

  // The program makes a handle: how many more should be on their way. None
  // before the second of a run; then 1, 2, 4 and so on.
  [[nodiscard]] size_t Next(CUdevice device, uint64_t bytes, TimePoint now);
  // One that was asked for was refused.
  void Refused(TimePoint now);

 private:
  CUdevice device_ = 0;
  uint64_t bytes_ = 0;
  size_t ahead_ = 0;
  TimePoint last_;
  std::optional<TimePoint> refused_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_CREATE_RUN_H_
