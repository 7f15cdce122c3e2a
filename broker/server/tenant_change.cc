// Operators' changes: the request's fields over a tenant's policy.
#include "broker/server/tenant_change.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"
#include "proto/tenant_bounds.h"
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

// As in the configuration file.
absl::Status CheckNumber(uint32_t number, uint32_t most,
                         absl::string_view field) {
  if (number >= 1 && number <= most) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_REQUEST,
      absl::StrCat(field, " is 1 to ", most, ": ", field, "=", number),
      {.field = field});
}

// As in the configuration file. Parts that a Duration cannot have are refused
// before they are added up.
absl::Status CheckTime(const google::protobuf::Duration& time,
                       absl::string_view field) {
  constexpr int64_t kMostSeconds = 3600;
  const bool fits = time.seconds() >= 0 && time.seconds() <= kMostSeconds &&
                    time.nanos() >= 0 && time.nanos() < 1'000'000'000 &&
                    (time.seconds() < kMostSeconds || time.nanos() == 0);
  if (fits) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_REQUEST,
      absl::StrCat("a time is from 0s to 1h: ", field, "=", time.seconds(),
                   "s and ", time.nanos(), "ns"),
      {.field = field});
}

absl::Status CheckLasts(const google::protobuf::Duration& time) {
  constexpr int64_t kMostSeconds = int64_t{30} * 24 * 3600;
  const bool fits = time.seconds() >= 1 && time.seconds() <= kMostSeconds &&
                    time.nanos() >= 0 && time.nanos() < 1'000'000'000;
  if (fits) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_REQUEST,
      absl::StrCat("a value lasts from 1s to 30d: lasts=", time.seconds(),
                   "s and ", time.nanos(), "ns"),
      {.field = "lasts"});
}

quota::Nanoseconds ToNanoseconds(const google::protobuf::Duration& time) {
  return std::chrono::seconds(time.seconds()) +
         quota::Nanoseconds(time.nanos());
}

void PutOver(const v1::SetTenantRequest& request, ReclaimPolicy* reclaim) {
  if (request.has_may_terminate())
    reclaim->may_terminate = request.may_terminate();
  if (request.has_min_residency())
    reclaim->min_residency = ToNanoseconds(request.min_residency());
  if (request.has_pause_grace())
    reclaim->pause_grace = ToNanoseconds(request.pause_grace());
  if (request.has_host_limit())
    reclaim->host_limit = FromProto(request.host_limit());
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
  if (request.has_max_handles()) {
    checked.Update(
        CheckNumber(request.max_handles(), proto::kMostHandles, "max_handles"));
  }
  if (request.has_max_sessions()) {
    checked.Update(CheckNumber(request.max_sessions(), proto::kMostSessions,
                               "max_sessions"));
  }
  checked.Update(CheckTime(request.min_residency(), "min_residency"));
  checked.Update(CheckTime(request.pause_grace(), "pause_grace"));
  checked.Update(CheckAmount(request.host_limit(), "host_limit"));
  if (request.has_lasts()) checked.Update(CheckLasts(request.lasts()));
  return checked;
}

bool NamesMoreThanUndo(const v1::SetTenantRequest& request) {
  v1::SetTenantRequest rest = request;
  rest.clear_name();
  rest.clear_undo();
  rest.clear_dry_run();
  rest.clear_if_revision();
  return rest.ByteSizeLong() > 0;
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
  PutOver(request, &policy->reclaim);
  if (request.has_max_handles()) policy->max_handles = request.max_handles();
  if (request.has_max_sessions()) policy->max_sessions = request.max_sessions();
  if (request.has_uids()) {
    policy->uids.clear();
    std::set<uint32_t> known;
    for (const uint32_t uid : request.uids().uid()) {
      if (known.insert(uid).second) policy->uids.push_back(uid);
    }
  }
}

}  // namespace gmb::broker
