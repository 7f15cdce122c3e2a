#ifndef GMB_DEVICE_HOST_HOST_ALLOCATOR_H_
#define GMB_DEVICE_HOST_HOST_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "device/allocator.h"
#include "device/devices.h"

namespace gmb::device {

// Granularity of the host device, the same as a GPU's, so that sizes and
// counts of slabs carry over.
inline constexpr uint64_t kHostGranularityBytes = uint64_t{2} << 20;

// The host device: every slab is a memfd (sealed_memory.h). Pages are used
// when they are first touched, so a capacity above the machine's memory is
// accepted, as everywhere on Linux. One descriptor a slab stays open here.
class HostAllocator final : public Allocator {
 public:
  // Tries once that memfds, seals and leases work here as needed.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Allocator>> Open(
      HostOptions options);

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<CreatedSlab> Create(uint64_t bytes) override;
  [[nodiscard]] absl::StatusOr<SlabKey> Import(const ShareableHandle& handle,
                                               uint64_t bytes) override;
  [[nodiscard]] absl::Status Destroy(SlabKey key) override;
  [[nodiscard]] absl::StatusOr<uint64_t> FreeBytes() override;
  [[nodiscard]] std::vector<HeldSlab> Held() const override;
  [[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> Processes() override {
    return std::vector<ProcessUsage>{};
  }

 private:
  struct Slab {
    base::UniqueFd anchor;
    uint64_t bytes = 0;
  };
  // Destroyed here, and not known to be free.
  struct Unreturned {
    SlabKey key;
    Slab slab;
    std::string stuck;  // see HeldSlab
  };

  explicit HostAllocator(DeviceInfo info) : info_(std::move(info)) {}

  // RESOURCE_EXHAUSTED where so many bytes are not free.
  absl::Status CheckRoom(uint64_t bytes);
  SlabKey Add(base::UniqueFd anchor, uint64_t bytes);
  // Whether nobody holds it any more, its pages dropped. Notes why that cannot
  // be told.
  static bool IsReturned(Unreturned* unreturned);
  // Forgets destroyed slabs that nobody holds any more.
  void CollectReturned();

  DeviceInfo info_;
  SlabKey next_key_ = 1;
  absl::flat_hash_map<SlabKey, Slab> live_;
  std::vector<Unreturned> unreturned_;
  uint64_t used_bytes_ = 0;  // live and unreturned; at most the capacity
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOST_HOST_ALLOCATOR_H_
