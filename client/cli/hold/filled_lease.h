#ifndef GMB_CLIENT_CLI_HOLD_FILLED_LEASE_H_
#define GMB_CLIENT_CLI_HOLD_FILLED_LEASE_H_

#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/hold/pattern.h"
#include "gmb/lease.h"

namespace gmb::cli {

// A lease together with what was written to it. Move-only; not thread-safe.
class FilledLease {
 public:
  // Writes `pattern` to all of `lease`, which takes tens of seconds for a whole
  // GPU; or to its first part, when `stop` asks for an end meanwhile.
  [[nodiscard]] static absl::StatusOr<FilledLease> Fill(
      Lease lease, Pattern pattern, const std::stop_token& stop = {});

  // An attached lease, with what it holds; DATA_LOSS when that is not
  // `pattern`, if there is one.
  [[nodiscard]] static absl::StatusOr<FilledLease> Read(
      Lease lease, std::optional<Pattern> pattern);

  // Writes all of it again. For one that was filled.
  [[nodiscard]] absl::Status Write(const std::stop_token& stop = {});

  // Reads back what was written. DATA_LOSS, with the first wrong offset where that is
  // known, when a byte is not what was written, or read at first.
  [[nodiscard]] absl::Status Verify() const;

  [[nodiscard]] const Lease& lease() const { return lease_; }
  // From the start on, what was written, or read at first.
  [[nodiscard]] uint64_t known_bytes() const { return known_bytes_; }
  // Of those bytes.
  [[nodiscard]] uint64_t checksum() const { return checksum_; }
  [[nodiscard]] absl::Status Seal() { return lease_.Seal(); }
  [[nodiscard]] absl::Status Release() && {
    return std::move(lease_).Release();
  }

 private:
  FilledLease(Lease lease, std::optional<Pattern> pattern)
      : lease_(std::move(lease)), pattern_(std::move(pattern)) {}

  // Reads what is known, and compares it.
  [[nodiscard]] absl::StatusOr<uint64_t> ReadChecksum() const;

  Lease lease_;
  std::optional<Pattern> pattern_;  // nullopt: not known
  uint64_t known_bytes_ = 0;
  uint64_t checksum_ = 0;
};

// DATA_LOSS unless every byte of `lease` is zero.
[[nodiscard]] absl::Status CheckZero(const Lease& lease);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_HOLD_FILLED_LEASE_H_
