#ifndef GMB_CLIENT_LEASE_LEASE_MAPPING_H_
#define GMB_CLIENT_LEASE_LEASE_MAPPING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/lease/early_mapping.h"
#include "client/lease/slab_set.h"
#include "device/mapper.h"

namespace gmb::internal {

// How one lease comes to be mapped: where its device is open, the addresses
// are reserved while the request is on its way, and the slabs mapped while
// the grant is. Unmaps in its destructor what nobody took. For one thread.
class LeaseMapping final : public EarlyMapping {
 public:
  // `bytes` and `access` as asked for; 0 bytes: not known before the slabs are
  // here. Without a mapper all is done at the end, with the one that is given
  // then.
  LeaseMapping(std::shared_ptr<device::Mapper> mapper, uint64_t bytes,
               absl::Span<const std::string> access,
               device::Protection protection)
      : mapper_(std::move(mapper)),
        asked_bytes_(bytes),
        access_(access),
        protection_(protection) {}
  LeaseMapping(const LeaseMapping&) = delete;
  LeaseMapping& operator=(const LeaseMapping&) = delete;

  // Null: not open.
  [[nodiscard]] const std::shared_ptr<device::Mapper>& mapper() const {
    return mapper_;
  }

  void Prepare() override;
  void Map(EarlySlabs slabs) override;
  void Undo() override;

  // The lease is granted, on the device of `mapper`: its mapped range.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<device::MappedRange>> Finish(
      std::shared_ptr<device::Mapper> mapper, SlabSet slabs);

 private:
  absl::Status ReserveAndMap(std::vector<device::ShareableHandle> handles,
                             absl::Span<const uint64_t> slab_bytes);

  std::shared_ptr<device::Mapper> mapper_;
  const uint64_t asked_bytes_;
  const absl::Span<const std::string> access_;
  const device::Protection protection_;
  std::unique_ptr<device::MappedRange> range_;  // goes before its mapper
  bool has_slabs_ = false;
  absl::Status mapped_;  // once it has slabs
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_LEASE_MAPPING_H_
