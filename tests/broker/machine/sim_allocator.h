#ifndef GMB_TESTS_BROKER_MACHINE_SIM_ALLOCATOR_H_
#define GMB_TESTS_BROKER_MACHINE_SIM_ALLOCATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/allocator.h"

namespace gmb::broker {

// A device that is a few numbers: what is alive, what clients still hold, and
// what somebody past the broker has taken. A handle is the slab's key.
class SimAllocator final : public device::Allocator {
 public:
  SimAllocator(std::string uuid, uint64_t bytes, uint64_t granularity,
               device::DeviceKind kind = device::DeviceKind::kVmm)
      : bytes_(bytes),
        info_{kind, std::move(uuid), "simulated", bytes, granularity} {}

  [[nodiscard]] static device::SlabKey KeyOf(
      const device::ShareableHandle& handle) {
    device::SlabKey key = 0;
    std::memcpy(&key, std::get<device::IpcHandle>(handle).data(), sizeof(key));
    return key;
  }

  // --- The world around it.
  void SetOutside(uint64_t bytes) { outside_ = std::min(bytes, bytes_ / 4); }
  void FailNextCreate(absl::Status why = absl::ResourceExhaustedError(kFull)) {
    fail_next_ = std::move(why);
  }
  // Nothing works any more.
  void Lose() { lost_ = true; }
  void Hold(device::SlabKey key) { ++holders_[key]; }
  void LetGo(device::SlabKey key) {
    if (--holders_[key] > 0) return;
    holders_.erase(key);
    const auto held = held_.find(key);
    if (held == held_.end()) return;
    used_ -= held->second;
    held_.erase(held);
  }
  [[nodiscard]] bool IsAlive(device::SlabKey key) const {
    return live_.contains(key);
  }

  // --- The broker's side.
  [[nodiscard]] const device::DeviceInfo& info() const override {
    return info_;
  }
  absl::StatusOr<device::CreatedSlab> Create(uint64_t bytes) override {
    if (lost_) return Lost();
    if (!fail_next_.ok()) return std::exchange(fail_next_, absl::OkStatus());
    if (bytes > Free()) return absl::ResourceExhaustedError(kFull);
    live_[++last_key_] = bytes;
    used_ += bytes;
    device::IpcHandle handle{};
    std::memcpy(handle.data(), &last_key_, sizeof(last_key_));
    return device::CreatedSlab{last_key_, handle};
  }
  // A slab that was created here and is kept, by a broker that is dead.
  absl::StatusOr<device::SlabKey> Import(const device::ShareableHandle& handle,
                                         uint64_t bytes) override {
    if (lost_) return Lost();
    const device::SlabKey key = KeyOf(handle);
    const auto slab = live_.find(key);
    if (slab == live_.end() || slab->second != bytes)
      return absl::InvalidArgumentError("no such slab");
    return key;
  }
  absl::Status Destroy(device::SlabKey key) override {
    if (lost_) return Lost();
    const auto slab = live_.find(key);
    if (slab == live_.end()) return absl::NotFoundError("no such slab");
    if (holders_.contains(key)) {
      held_.insert(*slab);
    } else {
      used_ -= slab->second;
    }
    live_.erase(slab);
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> FreeBytes() override {
    if (lost_) return Lost();
    return Free();
  }
  absl::StatusOr<std::vector<device::ProcessUsage>> Processes() override {
    return std::vector<device::ProcessUsage>{};
  }

 private:
  static constexpr char kFull[] = "the simulated device is full";
  static absl::Status Lost() {
    return absl::UnavailableError("the simulated device is lost");
  }
  [[nodiscard]] uint64_t Free() const {
    return bytes_ - std::min(bytes_, outside_ + used_);
  }

  const uint64_t bytes_;
  const device::DeviceInfo info_;
  uint64_t outside_ = 0;
  uint64_t used_ = 0;  // of the live and the held ones
  absl::Status fail_next_;
  bool lost_ = false;
  device::SlabKey last_key_ = 0;
  std::map<device::SlabKey, uint64_t> live_;
  std::map<device::SlabKey, uint64_t> held_;  // destroyed, and not back
  std::map<device::SlabKey, int> holders_;    // clients that map it
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_SIM_ALLOCATOR_H_
