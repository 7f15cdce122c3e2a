// A lease arrives: reserves its addresses and maps its slabs.
#include "client/lease/lease_mapping.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/round_up.h"
#include "base/status_macros.h"
#include "client/no_throw.h"

namespace gmb::internal {

void LeaseMapping::Prepare() {
  const uint64_t granularity = mapper_->info().granularity_bytes;
  if (asked_bytes_ == 0 ||
      asked_bytes_ > std::numeric_limits<uint64_t>::max() - granularity) {
    return;
  }
  // A step that fails here is tried again, and reported, when the slabs are
  // here.
  NoThrow([&] {
    GMB_ASSIGN_OR_RETURN(
        range_, mapper_->Reserve(base::RoundUp(asked_bytes_, granularity),
                                 access_, protection_));
    return absl::OkStatus();
  }).IgnoreError();
}

void LeaseMapping::Map(EarlySlabs slabs) {
  has_slabs_ = true;
  mapped_ = NoThrow([&] {
    return ReserveAndMap(std::move(slabs.handles), slabs.slab_bytes);
  });
}

void LeaseMapping::Undo() {
  mapped_ = NoThrow([&] {
    range_.reset();
    return absl::DeadlineExceededError(
        "gmb: the slabs came in time, but their grant did not");
  });
}

absl::StatusOr<std::unique_ptr<device::MappedRange>> LeaseMapping::Finish(
    std::shared_ptr<device::Mapper> mapper, SlabSet slabs) {
  // Where others were mapped before, their broker died and never granted them.
  if (!has_slabs_ || slabs.has_handles()) {
    if (has_slabs_) range_.reset();
    has_slabs_ = true;
    mapper_ = std::move(mapper);
    mapped_ = ReserveAndMap(slabs.TakeHandles(), slabs.slab_bytes());
  }
  if (!mapped_.ok()) return mapped_;
  return std::move(range_);
}

absl::Status LeaseMapping::ReserveAndMap(
    std::vector<device::ShareableHandle> handles,
    absl::Span<const uint64_t> slab_bytes) {
  const uint64_t bytes =
      std::accumulate(slab_bytes.begin(), slab_bytes.end(), uint64_t{0});
  if (range_ == nullptr || range_->size_bytes() != bytes) {
    range_.reset();
    GMB_ASSIGN_OR_RETURN(range_, mapper_->Reserve(bytes, access_, protection_));
  }
  return range_->Map(std::move(handles), slab_bytes);
}

}  // namespace gmb::internal
