#ifndef GMB_LEASE_H_
#define GMB_LEASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace gmb {

class Lease;

namespace internal {
// For the preload library of `gmb run`: gives back a lease that no work is left
// on, as the caller knows. Waits for nothing: not for the device, nor for the
// broker's answer, which later requests of the session come after. An error is
// of the unmapping.
[[nodiscard]] absl::Status ReleaseIdle(Lease lease);
}  // namespace internal

// Leased device memory, mapped as one contiguous address range. Move-only;
// gives the memory back when destroyed.
//
// A lease may outlive its Client: the session stays open until the last lease
// is gone. When the session is over (the broker hung up), the memory stays
// mapped, readable and writable, and giving it back is a local matter.
//
// Threads: const members may be called from several threads at once, the
// others, moving and destroying by one thread while no other uses the lease.
// In a forked child every call fails with FAILED_PRECONDITION, and destroying
// a lease does nothing.
class Lease {
 public:
  // An empty lease: no memory, size 0.
  Lease();
  Lease(Lease&& other) noexcept;
  // Gives back what this lease held before.
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // Synchronises the device, unmaps, and tells the broker without waiting for
  // its answer. Use Release() to learn whether it worked.
  ~Lease();

  // The start of the range: a device address (a host address for `host`).
  // Stays the same for the lease's life, also while it is evicted. Null when
  // empty.
  [[nodiscard]] void* data() const;
  // As leased: the bytes asked for, rounded up to the device's granularity.
  [[nodiscard]] uint64_t size_bytes() const;
  // The broker's name for it, as operators see it. 0 when empty.
  [[nodiscard]] uint64_t id() const;
  // UUID of the device. Empty when the lease is.
  [[nodiscard]] const std::string& device() const;
  // Another session's, mapped for reading (Client::Attach). False when empty.
  [[nodiscard]] bool attached() const;
  [[nodiscard]] bool empty() const { return impl_ == nullptr; }

  // Synchronises the device, unmaps, tells the broker and waits for its
  // answer. The lease is empty afterwards in every case; an error says what
  // went wrong on the way (INTERNAL from the driver, DEADLINE_EXCEEDED or
  // UNAVAILABLE when the broker did not answer). OK when the session is over:
  // the broker took the lease back when it ended.
  [[nodiscard]] absl::Status Release() &&;

  // The contents of a kPreserve lease are not written to any more (weights,
  // say): one copy that the broker makes of them stays true, and the lease can
  // be taken without another. Cannot be undone. Waits for the broker's answer.
  // One that is to be shared can be attached to from then on, so what writes it
  // has to be done. FAILED_PRECONDITION for a lease that was attached.
  [[nodiscard]] absl::Status Seal();

  // Synchronous byte copies between this process's memory and
  // [offset_bytes, offset_bytes + bytes) of the lease: for tools and tests,
  // not for speed. OUT_OF_RANGE when that leaves the lease. They enter the
  // session's gate themselves, fail as that does within answer_timeout, and
  // with FAILED_PRECONDITION while the lease is evicted for all that. So do the
  // two that write when the lease was attached. When the session is over they
  // serve what is mapped, and what is not is lost: FAILED_PRECONDITION.
  [[nodiscard]] absl::Status CopyToHost(void* to, uint64_t offset_bytes,
                                        uint64_t bytes) const;
  [[nodiscard]] absl::Status CopyFromHost(uint64_t offset_bytes,
                                          const void* from, uint64_t bytes);
  [[nodiscard]] absl::Status Fill(uint64_t offset_bytes, uint8_t value,
                                  uint64_t bytes);

 private:
  friend class Client;
  friend absl::Status internal::ReleaseIdle(Lease lease);
  struct Impl;
  explicit Lease(std::unique_ptr<Impl> impl);
  static void Drop(std::unique_ptr<Impl> impl) noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace gmb

#endif  // GMB_LEASE_H_
