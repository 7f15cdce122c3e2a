// The heap's chunks are leases of its client.
#include "client/heap/lease_source.h"

#include <utility>

#include "base/status_macros.h"
#include "gmb/lease.h"

namespace gmb::internal {
namespace {

class LeaseMemory final : public ChunkMemory {
 public:
  explicit LeaseMemory(Lease lease) : lease_(std::move(lease)) {}

  void* data() const override { return lease_.data(); }
  uint64_t size_bytes() const override { return lease_.size_bytes(); }
  absl::Status Release() override { return std::move(lease_).Release(); }

 private:
  Lease lease_;
};

}  // namespace

LeaseSource::LeaseSource(Client* client, AcquireOptions like)
    : client_(client), like_(std::move(like)) {}

absl::StatusOr<std::unique_ptr<ChunkMemory>> LeaseSource::Acquire(
    uint64_t bytes, absl::Duration wait) {
  AcquireOptions options = like_;
  options.wait = wait;
  GMB_ASSIGN_OR_RETURN(Lease lease, client_->Acquire(bytes, options));
  return std::make_unique<LeaseMemory>(std::move(lease));
}

absl::StatusOr<std::vector<std::unique_ptr<ChunkMemory>>>
LeaseSource::AcquireWithMore(uint64_t bytes, size_t ahead) {
  std::vector<std::unique_ptr<ChunkMemory>> memory;
  if (ahead == 0) {
    GMB_ASSIGN_OR_RETURN(std::unique_ptr<ChunkMemory> only,
                         Acquire(bytes, absl::ZeroDuration()));
    memory.push_back(std::move(only));
    return memory;
  }
  AcquireOptions options = like_;
  options.wait = absl::ZeroDuration();
  GMB_ASSIGN_OR_RETURN(
      std::vector<Lease> leases,
      internal::AcquireWithMore(*client_, bytes, options, ahead));
  for (Lease& lease : leases)
    memory.push_back(std::make_unique<LeaseMemory>(std::move(lease)));
  return memory;
}

}  // namespace gmb::internal
