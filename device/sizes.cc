// Checks of sizes that arrive from outside.
#include "device/sizes.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::device {

absl::Status CheckSize(uint64_t bytes, uint64_t granularity_bytes) {
  if (bytes == 0) {
    return absl::InvalidArgumentError("size is 0 bytes: ask for at least one");
  }
  if (bytes % granularity_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "size is no multiple of the device's granularity: bytes=", bytes,
        " granularity=", granularity_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckSlabs(size_t num_handles,
                        absl::Span<const uint64_t> slab_bytes,
                        uint64_t range_bytes, uint64_t granularity_bytes) {
  if (num_handles != slab_bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("one size a handle is needed: handles=", num_handles,
                     " sizes=", slab_bytes.size()));
  }
  uint64_t left_bytes = range_bytes;
  for (const uint64_t bytes : slab_bytes) {
    GMB_RETURN_IF_ERROR(CheckSize(bytes, granularity_bytes));
    if (bytes > left_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "slabs are larger than the range they go into: range=", range_bytes));
    }
    left_bytes -= bytes;
  }
  if (left_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("slabs do not fill the range: range=", range_bytes,
                     " missing=", left_bytes));
  }
  return absl::OkStatus();
}

}  // namespace gmb::device
