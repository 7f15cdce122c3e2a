#ifndef GMB_CLIENT_HEAP_LEASE_SOURCE_H_
#define GMB_CLIENT_HEAP_LEASE_SOURCE_H_

#include <memory>
#include <vector>

#include "client/heap/chunk_source.h"
#include "gmb/client.h"
#include "gmb/options.h"

namespace gmb::internal {

// Chunks that are leases of one client's session.
class LeaseSource final : public ChunkSource {
 public:
  // `like` says what kind of leases; its wait is not used.
  LeaseSource(Client* client, AcquireOptions like);

  absl::StatusOr<std::unique_ptr<ChunkMemory>> Acquire(
      uint64_t bytes, absl::Duration wait) override;
  absl::StatusOr<std::vector<std::unique_ptr<ChunkMemory>>> AcquireWithMore(
      uint64_t bytes, size_t ahead) override;

 private:
  Client* const client_;
  const AcquireOptions like_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_LEASE_SOURCE_H_
