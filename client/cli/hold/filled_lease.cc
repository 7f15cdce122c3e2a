// `gmb hold`: a lease, and what was written to it.
#include "client/cli/hold/filled_lease.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace gmb::cli {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// Calls step(offset, bytes) for every chunk of so many bytes, in order.
template <typename Step>
absl::Status ForEachChunk(uint64_t all, const Step& step) {
  for (uint64_t offset = 0; offset < all; offset += kChunkBytes) {
    const uint64_t bytes = std::min(kChunkBytes, all - offset);
    GMB_RETURN_IF_ERROR(step(offset, bytes));
  }
  return absl::OkStatus();
}

absl::Status Wrong(const Lease& lease, uint64_t offset, uint8_t expected,
                   uint8_t found) {
  return absl::DataLossError(
      absl::StrFormat("leased memory holds wrong contents: lease=%d offset=%d "
                      "expected=0x%02X found=0x%02X",
                      lease.id(), offset, expected, found));
}

// `found` is what the lease has at `offset`.
absl::Status Compare(const Lease& lease, uint64_t offset,
                     const std::vector<uint8_t>& expected,
                     const std::vector<uint8_t>& found, uint64_t bytes) {
  if (std::memcmp(expected.data(), found.data(), bytes) == 0)
    return absl::OkStatus();
  const auto [wanted, got] = std::mismatch(
      expected.begin(), expected.begin() + static_cast<ptrdiff_t>(bytes),
      found.begin());
  return Wrong(lease, offset + static_cast<uint64_t>(got - found.begin()),
               *wanted, *got);
}

}  // namespace

absl::StatusOr<FilledLease> FilledLease::Fill(Lease lease, Pattern pattern,
                                              const std::stop_token& stop) {
  FilledLease filled(std::move(lease), std::move(pattern));
  GMB_RETURN_IF_ERROR(filled.Write(stop));
  return filled;
}

absl::StatusOr<FilledLease> FilledLease::Read(Lease lease,
                                              std::optional<Pattern> pattern) {
  FilledLease read(std::move(lease), std::move(pattern));
  read.known_bytes_ = read.lease_.size_bytes();
  GMB_ASSIGN_OR_RETURN(read.checksum_, read.ReadChecksum());
  return read;
}

absl::Status FilledLease::Write(const std::stop_token& stop) {
  std::vector<uint8_t> chunk(kChunkBytes);
  Checksum checksum;
  known_bytes_ = 0;
  const absl::Status written =
      ForEachChunk(lease_.size_bytes(), [&](uint64_t offset, uint64_t bytes) {
        if (stop.stop_requested()) return absl::OkStatus();
        pattern_->Write(offset, chunk.data(), bytes);
        checksum.Add(chunk.data(), bytes);
        known_bytes_ = offset + bytes;
        return lease_.CopyFromHost(offset, chunk.data(), bytes);
      });
  if (!written.ok()) return written;
  checksum_ = checksum.value();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FilledLease::ReadChecksum() const {
  std::vector<uint8_t> expected(kChunkBytes);
  std::vector<uint8_t> found(kChunkBytes);
  Checksum checksum;
  const absl::Status same =
      ForEachChunk(known_bytes_, [&](uint64_t offset, uint64_t bytes) {
        GMB_RETURN_IF_ERROR(lease_.CopyToHost(found.data(), offset, bytes));
        checksum.Add(found.data(), bytes);
        if (!pattern_.has_value()) return absl::OkStatus();
        pattern_->Write(offset, expected.data(), bytes);
        return Compare(lease_, offset, expected, found, bytes);
      });
  if (!same.ok()) return same;
  return checksum.value();
}

absl::Status FilledLease::Verify() const {
  GMB_ASSIGN_OR_RETURN(const uint64_t found, ReadChecksum());
  if (found == checksum_) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "leased memory has another checksum than was written: "
      "lease=%d expected=%s found=%s",
      lease_.id(), Checksum::Text(checksum_), Checksum::Text(found)));
}

absl::Status CheckZero(const Lease& lease) {
  const std::vector<uint8_t> zeros(kChunkBytes, 0);
  std::vector<uint8_t> found(kChunkBytes);
  return ForEachChunk(lease.size_bytes(), [&](uint64_t offset, uint64_t bytes) {
    GMB_RETURN_IF_ERROR(lease.CopyToHost(found.data(), offset, bytes));
    return Compare(lease, offset, zeros, found, bytes);
  });
}

}  // namespace gmb::cli
