#ifndef GMB_TESTS_ATTACK_OWN_LEASE_H_
#define GMB_TESTS_ATTACK_OWN_LEASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "gmb/v1/session.pb.h"
#include "ipc/seqpacket.h"
#include "tests/attack/hand_stream.h"

namespace gmb::attack {

// A slab of the `host` device: its memfd, kept, and a mapping of it.
struct Slab {
  base::UniqueFd fd;
  uint64_t bytes = 0;
  void* at = nullptr;

  Slab(base::UniqueFd memory, uint64_t size);
  Slab(Slab&& other) noexcept;
  Slab& operator=(Slab&&) = delete;
  ~Slab();
  void Unmap();
};

// Memory may come back to its tenant with the bytes of FillWithOwn.
[[nodiscard]] bool HasBytesOfOthers(const Slab& slab);
void FillWithOwn(const Slab& slab);

[[nodiscard]] v1::ClientMessage AcquireOf(uint64_t bytes);
[[nodiscard]] v1::ClientMessage ReleaseOf(uint64_t lease);
[[nodiscard]] v1::ClientMessage MappedOf(uint64_t lease, uint64_t move);

// Receives Slabs frames until `count` slabs are here, acknowledging each. The
// acknowledgements go to `acks`, where it is given.
[[nodiscard]] absl::StatusOr<std::vector<Slab>> TakeSlabs(
    ipc::SeqpacketSocket& socket, uint32_t count,
    std::vector<std::string>* acks = nullptr);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_OWN_LEASE_H_
