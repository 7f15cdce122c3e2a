#ifndef GMB_CLIENT_CLI_FILLED_LEASE_H_
#define GMB_CLIENT_CLI_FILLED_LEASE_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/pattern.h"
#include "gmb/lease.h"

namespace gmb::cli {

// A lease together with what was written to it. Move-only; not thread-safe.
class FilledLease {
 public:
  // Writes `pattern` to all of `lease`.
  [[nodiscard]] static absl::StatusOr<FilledLease> Fill(Lease lease,
                                                        Pattern pattern);

  // Writes all of it again.
  [[nodiscard]] absl::Status Write();

  // Reads everything back. DATA_LOSS, with the first wrong offset, when a byte
  // is not what was written.
  [[nodiscard]] absl::Status Verify() const;

  [[nodiscard]] const Lease& lease() const { return lease_; }
  // Of what was written.
  [[nodiscard]] uint64_t checksum() const { return checksum_; }
  [[nodiscard]] absl::Status Seal() { return lease_.Seal(); }
  [[nodiscard]] absl::Status Release() && {
    return std::move(lease_).Release();
  }

 private:
  FilledLease(Lease lease, Pattern pattern)
      : lease_(std::move(lease)), pattern_(std::move(pattern)) {}

  Lease lease_;
  Pattern pattern_;
  uint64_t checksum_ = 0;
};

// DATA_LOSS unless every byte of `lease` is zero.
[[nodiscard]] absl::Status CheckZero(const Lease& lease);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_FILLED_LEASE_H_
