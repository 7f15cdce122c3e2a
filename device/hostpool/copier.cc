// Eviction and restore: copies slabs to the host pool and back.
#include "device/hostpool/copier.h"

#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "device/cuda/cuda_devices.h"
#include "device/host/host_copy_engine.h"

namespace gmb::device {
namespace {

absl::StatusOr<std::unique_ptr<CopyEngine>> OpenEngine(
    const DeviceInfo& info, const CopyPacing& pacing) {
  if (info.kind == DeviceKind::kHost) return std::make_unique<HostCopyEngine>();
  return OpenCudaCopyEngine(info, pacing.streams);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Copier>> OpenCopier(const DeviceInfo& info,
                                                   HostPool* pool,
                                                   const CopyPacing& pacing) {
  if (pacing.piece_bytes == 0 || pacing.window_bytes == 0 ||
      pacing.streams == 0) {
    return absl::InvalidArgumentError(
        "pieces, window and streams of a copier must not be 0");
  }
  GMB_ASSIGN_OR_RETURN(auto out, OpenEngine(info, pacing));
  GMB_ASSIGN_OR_RETURN(auto in, OpenEngine(info, pacing));
  return std::make_unique<Copier>(pool, std::move(out), std::move(in), pacing);
}

}  // namespace gmb::device
