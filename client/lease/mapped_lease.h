#ifndef GMB_CLIENT_LEASE_MAPPED_LEASE_H_
#define GMB_CLIENT_LEASE_MAPPED_LEASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "device/mapper.h"

namespace gmb::internal {

// The addresses of one lease and what is mapped there: shared by the Lease,
// which uses and releases it, and the session's mover, which evicts it and maps
// it again. Thread-safe.
class MappedLease {
 public:
  // `range` is mapped, and has access for the devices `access` as well.
  // `attached`: it is another session's, and mapped for reading.
  MappedLease(std::shared_ptr<device::Mapper> mapper,
              std::unique_ptr<device::MappedRange> range,
              std::vector<std::string> access, bool attached);
  MappedLease(const MappedLease&) = delete;
  MappedLease& operator=(const MappedLease&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] const std::shared_ptr<device::Mapper>& mapper() const {
    return mapper_;
  }
  [[nodiscard]] const std::vector<std::string>& access() const {
    return access_;
  }

  [[nodiscard]] bool attached() const { return attached_; }

  // Unmaps and keeps the addresses; OK when nothing is mapped. After an error
  // all is mapped as before. FAILED_PRECONDITION where the addresses cannot be
  // kept (ipc).
  [[nodiscard]] absl::Status Evict();
  // Maps at the same addresses; OK, and nothing changes, when it is mapped.
  // After an error nothing is mapped. NOT_FOUND when the lease was released.
  [[nodiscard]] absl::Status Map(std::vector<device::ShareableHandle> handles,
                                 absl::Span<const uint64_t> slab_bytes);
  // Unmaps and gives the addresses up. ReleaseIdle: no work is left on it, and
  // the device is not waited for.
  [[nodiscard]] absl::Status Release();
  [[nodiscard]] absl::Status ReleaseIdle();
  [[nodiscard]] bool mapped() const;

  // Calls `use(mapper, data())`, and returns what it does, while nothing is
  // unmapped. FAILED_PRECONDITION when nothing is mapped.
  template <typename Use>
  [[nodiscard]] absl::Status WhileMapped(Use use) const {
    base::MutexLock lock(&mu_);
    if (!mapped_) return Evicted();
    return use(*mapper_, static_cast<char*>(data_));
  }

 private:
  static absl::Status Evicted();

  const std::shared_ptr<device::Mapper> mapper_;  // outlives the range
  const std::vector<std::string> access_;
  const bool attached_;
  void* const data_;
  const uint64_t size_bytes_;

  mutable base::Mutex mu_;
  // Null: released.
  std::unique_ptr<device::MappedRange> range_ ABSL_GUARDED_BY(mu_);
  bool mapped_ ABSL_GUARDED_BY(mu_) = true;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_MAPPED_LEASE_H_
