// Operators change pools: their size is stored, that they are drained is not.
#include "broker/server/admin_pools.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "broker/machine/wire_form.h"

namespace gmb::broker {

absl::Status AdminPools::Resize(AuditRecord audit,
                                const v1::ResizePoolRequest& request,
                                v1::ResizePoolResponse* response) {
  GMB_ASSIGN_OR_RETURN(const std::string device,
                       core_->ResolveDevice(request.device()));
  const quota::Amount size = FromProto(request.size());
  GMB_RETURN_IF_ERROR(core_->CheckResize(device, size));
  audit.action = "resize_pool";
  audit.subject = device;
  audit.detail = request.ShortDebugString();
  GMB_RETURN_IF_ERROR(store_->PutPoolTarget(device, size, audit));
  not_in_force_->Settle(DroppedPool(device));
  GMB_ASSIGN_OR_RETURN(*response->mutable_change(),
                       core_->ResizePool(device, size));
  return absl::OkStatus();
}

absl::Status AdminPools::Drain(AuditRecord audit,
                               const v1::DrainPoolRequest& request,
                               v1::DrainPoolResponse* response) {
  GMB_ASSIGN_OR_RETURN(const std::string device,
                       core_->ResolveDevice(request.device()));
  audit.action = request.draining() ? "drain_pool" : "undrain_pool";
  audit.subject = device;
  return store_->Audit(
      audit,
      [&] {
        const absl::StatusOr<uint64_t> leased =
            core_->DrainPool(device, request.draining());
        if (leased.ok()) response->set_leased_bytes(*leased);
        return leased.status();
      },
      QuotaStore::OnBadDisk::kActAnyway);
}

}  // namespace gmb::broker
