#include "broker/server/tenant_change.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/core/wire_form.h"
#include "proto/error_status.h"
#include "quota/units.h"

namespace gmb::broker {
namespace {

absl::Status CheckAmount(const v1::Amount& amount, absl::string_view field) {
  // As in the configuration file.
  if (amount.bytes() > quota::kMaxPoolBytes) {
    return proto::MakeError(v1::BAD_REQUEST,
                            absl::StrCat("an amount is at most 64 TiB: ", field,
                                         "=", amount.bytes()),
                            {.field = field});
  }
  if (!FromProto(amount).IsValid()) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a share of the pool is a fraction from 0 to 1: ", field,
                     "=", amount.fraction()),
        {.field = field});
  }
  return absl::OkStatus();
}

absl::Status CheckWeight(double weight) {
  if (std::isfinite(weight) && weight > 0) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_REQUEST,
      absl::StrCat("a weight is a number above 0: weight=", weight),
      {.field = "weight"});
}

void PutOver(const v1::SetTenantRequest& request, quota::TenantQuota* quota) {
  if (request.has_guarantee())
    quota->guarantee = FromProto(request.guarantee());
  if (request.has_limit()) quota->limit = FromProto(request.limit());
  if (request.has_weight()) quota->weight = request.weight();
}

bool NamesQuota(const v1::SetTenantRequest& request) {
  return request.has_guarantee() || request.has_limit() || request.has_weight();
}

}  // namespace

absl::Status CheckQuantities(const v1::SetTenantRequest& request) {
  absl::Status checked = CheckAmount(request.guarantee(), "guarantee");
  checked.Update(CheckAmount(request.limit(), "limit"));
  if (request.has_weight()) checked.Update(CheckWeight(request.weight()));
  return checked;
}

void PutOver(const v1::SetTenantRequest& request, const std::string& device,
             TenantPolicy* policy) {
  if (device.empty()) {
    PutOver(request, &policy->quota);
    for (auto& [uuid, quota] : policy->device_quotas) PutOver(request, &quota);
  } else if (NamesQuota(request)) {
    PutOver(request, &policy->device_quotas.try_emplace(device, policy->quota)
                          .first->second);
  }
  if (request.has_max_handles()) policy->max_handles = request.max_handles();
  if (request.has_max_sessions()) policy->max_sessions = request.max_sessions();
  if (request.has_uids()) {
    policy->uids.assign(request.uids().uid().begin(),
                        request.uids().uid().end());
  }
}

}  // namespace gmb::broker
