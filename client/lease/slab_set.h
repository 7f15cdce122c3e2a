#ifndef GMB_CLIENT_LEASE_SLAB_SET_H_
#define GMB_CLIENT_LEASE_SLAB_SET_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "device/handle.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// The slabs of one lease as they arrive, frame by frame. Owns their handles
// until Take(). Trusts nothing in a frame. Not thread-safe.
class SlabSet {
 public:
  // The most slabs that a lease may say it has.
  static constexpr uint32_t kMostSlabs = 65'536;

  // Whether a frame is sound by itself: as many sizes as handles, of one kind,
  // no size 0. An error means that the broker broke the protocol.
  [[nodiscard]] static absl::Status CheckFrame(const v1::Slabs& frame,
                                               size_t fds);

  // Takes over the handles of the next frame of the lease; `frame` is sound.
  // One that begins a lease takes the place of what came before: the broker
  // that had sent it has died. An error, when the frame does not continue the
  // lease, closes the handles.
  [[nodiscard]] absl::Status Add(const v1::Slabs& frame,
                                 std::vector<base::UniqueFd> fds);

  // All slabs of the lease are here.
  [[nodiscard]] bool complete() const {
    return expected_ > 0 && slab_bytes_.size() == expected_;
  }
  // All slabs of the lease that `frame` speaks of are here: it sends them again.
  [[nodiscard]] bool Has(const v1::Slabs& frame) const {
    return complete() && frame.lease_id() == lease_id_ &&
           frame.slabs_in_lease() == expected_ &&
           frame.first_slab() < expected_;
  }
  [[nodiscard]] uint64_t lease_id() const { return lease_id_; }
  [[nodiscard]] bool empty() const { return slab_bytes_.empty(); }
  // Nobody has taken them.
  [[nodiscard]] bool has_handles() const { return !handles_.empty(); }

  // Whether these are the slabs that a message speaks of: a Grant or a Map.
  template <typename Message>
  [[nodiscard]] absl::Status Matches(const Message& message) const {
    return Matches(message.lease_id(), message.slabs(), message.bytes());
  }

  [[nodiscard]] std::vector<device::ShareableHandle> TakeHandles() {
    return std::exchange(handles_, {});
  }
  [[nodiscard]] const std::vector<uint64_t>& slab_bytes() const {
    return slab_bytes_;
  }

 private:
  [[nodiscard]] absl::Status Matches(uint64_t lease_id, uint32_t slabs,
                                     uint64_t bytes) const;

  uint64_t lease_id_ = 0;
  uint32_t expected_ = 0;  // slabs in the lease; 0 before the first frame
  uint64_t total_bytes_ = 0;
  std::vector<uint64_t> slab_bytes_;
  std::vector<device::ShareableHandle> handles_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_SLAB_SET_H_
