#ifndef GMB_CLIENT_LEASE_HOOKED_MAPPER_H_
#define GMB_CLIENT_LEASE_HOOKED_MAPPER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/lease/range_hooks.h"
#include "device/mapper.h"

namespace gmb::internal {

// The mapper of one lease whose holder maps it: its ranges have no address, and
// hand the slabs to the hooks. The rest is the device's own mapper. Thread-safe.
class HookedMapper final : public device::Mapper {
 public:
  // `mapper` is of a vmm device. The hooks outlive its ranges.
  HookedMapper(std::shared_ptr<device::Mapper> mapper, const RangeHooks& hooks)
      : mapper_(std::move(mapper)), hooks_(hooks) {}

  [[nodiscard]] const device::DeviceInfo& info() const override {
    return mapper_->info();
  }
  // `access` and `protection` are the holder's to set.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<device::MappedRange>> Reserve(
      uint64_t bytes, absl::Span<const std::string> access,
      device::Protection protection) override;
  [[nodiscard]] absl::Status Synchronize(
      absl::Span<const std::string> access) override {
    return mapper_->Synchronize(access);
  }
  // They would need an address.
  [[nodiscard]] absl::Status CopyToHost(void* to, const void* from_device,
                                        uint64_t bytes) override;
  [[nodiscard]] absl::Status CopyToDevice(void* to_device, const void* from,
                                          uint64_t bytes) override;
  [[nodiscard]] absl::Status Fill(void* device, uint8_t value,
                                  uint64_t bytes) override;

 private:
  const std::shared_ptr<device::Mapper> mapper_;
  const RangeHooks hooks_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_HOOKED_MAPPER_H_
