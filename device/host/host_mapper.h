#ifndef GMB_DEVICE_HOST_HOST_MAPPER_H_
#define GMB_DEVICE_HOST_HOST_MAPPER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/handle.h"
#include "device/mapper.h"

namespace gmb::device {

// Maps slabs of the host device as shared memory. Like device memory, a mapped
// range is not inherited by fork and stays out of core dumps.
class HostMapper final : public Mapper {
 public:
  explicit HostMapper(DeviceInfo info) : info_(std::move(info)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  // Every host device of a broker may be named in `access`; a GPU may not.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<MappedRange>> Reserve(
      uint64_t bytes, absl::Span<const std::string> access,
      Protection protection) override;
  // The host's work is done when it is submitted.
  [[nodiscard]] absl::Status Synchronize(
      absl::Span<const std::string>) override {
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status CopyToHost(void* to, const void* from_device,
                                        uint64_t bytes) override;
  [[nodiscard]] absl::Status CopyToDevice(void* to_device, const void* from,
                                          uint64_t bytes) override;
  [[nodiscard]] absl::Status Fill(void* device, uint8_t value,
                                  uint64_t bytes) override;

 private:
  const DeviceInfo info_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOST_HOST_MAPPER_H_
