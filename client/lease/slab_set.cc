// A lease arrives: collects its slabs, and believes no frame.
#include "client/lease/slab_set.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/wire.h"

namespace gmb::internal {
namespace {

device::IpcHandle IpcHandleFromWire(const std::string& bytes) {
  device::IpcHandle handle;
  std::transform(bytes.begin(), bytes.end(), handle.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return handle;
}

}  // namespace

absl::Status SlabSet::CheckFrame(const v1::Slabs& frame, size_t fds) {
  const auto sizes = static_cast<size_t>(frame.slab_bytes_size());
  const auto ipc_handles = static_cast<size_t>(frame.ipc_handles_size());
  if (sizes == 0) return ProtocolError("a slabs frame without slabs");
  if (fds + ipc_handles != sizes || (fds > 0 && ipc_handles > 0)) {
    return ProtocolError(absl::StrCat(
        "a slabs frame with the wrong number of handles: sizes=", sizes,
        " fds=", fds, " ipc_handles=", ipc_handles));
  }
  for (const std::string& handle : frame.ipc_handles()) {
    if (handle.size() != device::IpcHandle{}.size()) {
      return ProtocolError(
          absl::StrCat("an ipc handle of ", handle.size(), " bytes"));
    }
  }
  const auto& slab_bytes = frame.slab_bytes();
  if (std::find(slab_bytes.begin(), slab_bytes.end(), 0U) != slab_bytes.end()) {
    return ProtocolError("a slab of 0 bytes");
  }
  return absl::OkStatus();
}

absl::Status SlabSet::Add(const v1::Slabs& frame,
                          std::vector<base::UniqueFd> fds) {
  if (frame.first_slab() == 0) *this = SlabSet();
  if (expected_ == 0) {
    if (frame.slabs_in_lease() == 0 || frame.slabs_in_lease() > kMostSlabs) {
      return ProtocolError(
          absl::StrCat("a lease of ", frame.slabs_in_lease(), " slabs"));
    }
    expected_ = frame.slabs_in_lease();
    lease_id_ = frame.lease_id();
  }
  const auto more = static_cast<size_t>(frame.slab_bytes_size());
  if (frame.lease_id() != lease_id_ || frame.slabs_in_lease() != expected_ ||
      frame.first_slab() != slab_bytes_.size() ||
      more > expected_ - slab_bytes_.size()) {
    return ProtocolError(absl::StrCat(
        "a slabs frame that does not continue its lease: lease=", lease_id_,
        " have=", slab_bytes_.size(), " of=", expected_, " frame lease=",
        frame.lease_id(), " first=", frame.first_slab(), " slabs=", more));
  }
  for (const uint64_t bytes : frame.slab_bytes()) {
    if (bytes > std::numeric_limits<uint64_t>::max() - total_bytes_) {
      return ProtocolError("slabs whose sizes overflow");
    }
    total_bytes_ += bytes;
    slab_bytes_.push_back(bytes);
  }
  for (base::UniqueFd& fd : fds) handles_.emplace_back(std::move(fd));
  for (const std::string& bytes : frame.ipc_handles()) {
    handles_.emplace_back(IpcHandleFromWire(bytes));
  }
  return absl::OkStatus();
}

absl::Status SlabSet::Matches(uint64_t lease_id, uint32_t slabs,
                              uint64_t bytes) const {
  if (lease_id != lease_id_ || slabs != slab_bytes_.size() ||
      bytes != total_bytes_) {
    return ProtocolError(absl::StrCat(
        "slabs that are not those announced: lease=", lease_id,
        " slabs=", slabs, " bytes=", bytes, " sent lease=", lease_id_,
        " slabs=", slab_bytes_.size(), " bytes=", total_bytes_));
  }
  return absl::OkStatus();
}

}  // namespace gmb::internal
