// A refusal in words: why a request got no lease, or an operator no change, and
// what to do next.
#include "broker/machine/refusals.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/amount_text.h"
#include "proto/error_status.h"

namespace gmb::broker {

absl::Status NoSuchTenant(absl::string_view name) {
  return proto::MakeError(
      v1::NO_SUCH_TENANT,
      absl::StrCat("no such tenant: `gmb tenant list` shows them: tenant=",
                   name.substr(0, 63)));
}

absl::Status NoSuchDevice(absl::string_view device) {
  return proto::MakeError(
      v1::NO_SUCH_DEVICE,
      device.empty()
          ? std::string("the broker has several devices: name one by its "
                        "UUID (`gmb status` shows them)")
          : absl::StrCat("the broker has no such device (`gmb status` "
                         "shows them): device=",
                         device.substr(0, 63)),
      {.field = "device"});
}

absl::Status NoSuchLease(uint64_t lease) {
  return proto::MakeError(
      v1::NO_SUCH_LEASE,
      absl::StrCat("this session has no such lease (it may have been released "
                   "already): lease=",
                   lease));
}

absl::Status NoSuchName(absl::string_view name) {
  return proto::MakeError(
      v1::NO_SUCH_LEASE,
      absl::StrCat("the tenant has no shared lease of this name, or its writer "
                   "ended before it was sealed: make one: name=",
                   name.substr(0, 128)));
}

absl::Status NotExported() {
  return proto::MakeError(
      v1::NO_SUCH_LEASE,
      "no process of the tenant has exported this memory, or it has given it "
      "back");
}

absl::Status Stopping() {
  return proto::MakeError(v1::DRAINING,
                          "the broker is stopping: ask again when it is back");
}

absl::Status TooManyRequests(uint64_t max) {
  return proto::MakeError(
      v1::TOO_MANY_REQUESTS,
      absl::StrCat(
          "too many requests of this session are unanswered: wait for some: "
          "max=",
          max),
      {.retry_after = absl::Milliseconds(100)});
}

absl::Status DenialStatus(const quota::Denied& denied, uint64_t bytes) {
  const proto::ErrorFields fields{
      .deficit_bytes = denied.deficit_bytes,
      .retry_after = absl::Nanoseconds(denied.retry_after.count())};
  const std::string figures =
      absl::StrCat(": bytes=", bytes, " deficit_bytes=", denied.deficit_bytes);
  if (denied.pausing) {
    return proto::MakeError(
        v1::PAUSING,
        absl::StrCat("the session is being paused for somebody's guarantee and "
                     "this is above its own: end the scope, then try again",
                     figures),
        fields);
  }
  switch (denied.reason) {
    case quota::Reason::kTenantLimit:
      return proto::MakeError(
          v1::TENANT_LIMIT,
          absl::StrCat("above the tenant's limit: release leases, or ask the "
                       "operator for a higher limit",
                       figures),
          fields);
    case quota::Reason::kTooManyHandles:
      return proto::MakeError(
          v1::TOO_MANY_HANDLES,
          absl::StrCat(
              "the tenant or the broker has as many slabs as it may: take "
              "fewer, larger leases, or release some",
              figures),
          fields);
    case quota::Reason::kPoolExhausted:
      return proto::MakeError(
          v1::POOL_EXHAUSTED,
          absl::StrCat(
              denied.claimed
                  ? "the memory that is free is kept for a request that is "
                    "served first: wait longer, or ask again later"
                  : "the pool has no such memory left now: wait longer, or "
                    "take less",
              figures),
          fields);
    case quota::Reason::kOvercommitted:
      return proto::MakeError(
          v1::OVERCOMMITTED,
          absl::StrCat(
              "the pool, less what is guaranteed to other tenants and what is "
              "missing, has no room for this: take less, or have the operator "
              "change the quotas",
              figures),
          fields);
    case quota::Reason::kDraining:
      return proto::MakeError(v1::DRAINING,
                              "no new grants: the device, or the broker, is "
                              "being taken out of service",
                              {.retry_after = absl::Seconds(5)});
    case quota::Reason::kCancelled:
      return proto::MakeError(v1::CANCELLED_BY_CLIENT,
                              "the request was withdrawn");
    default:
      return proto::MakeError(
          v1::BAD_REQUEST,
          absl::StrCat("the request cannot be served", figures));
  }
}

absl::Status GateFirst(const quota::Denied& denied, uint64_t bytes) {
  return proto::MakeError(
      v1::OVERCOMMITTED,
      absl::StrCat("guarantees of others rest on this memory, and this "
                   "session's gate is off, so that nobody could take it back: "
                   "turn the gate on before acquiring, or take less: bytes=",
                   bytes, " deficit_bytes=", denied.deficit_bytes),
      {.deficit_bytes = denied.deficit_bytes});
}

absl::Status AnswersFirst(const quota::Denied& denied, uint64_t bytes) {
  return proto::MakeError(
      v1::OVERCOMMITTED,
      absl::StrCat("guarantees of others rest on this memory, and some process "
                   "of this tenant does not answer when it is told to give "
                   "memory back: end that process, or wait for it: bytes=",
                   bytes, " deficit_bytes=", denied.deficit_bytes),
      {.deficit_bytes = denied.deficit_bytes, .retry_after = absl::Seconds(1)});
}

absl::Status RefusalStatus(const quota::Refusal& refusal,
                           absl::string_view device) {
  const proto::ErrorFields fields{.deficit_bytes = refusal.deficit_bytes};
  switch (refusal.reason) {
    case quota::Reason::kOvercommitted:
      return proto::MakeError(
          v1::OVERCOMMITTED,
          absl::StrCat(
              "the guarantees of all tenants would exceed the pool: lower "
              "some guarantee, or enlarge the pool: device=",
              device, " deficit_bytes=", refusal.deficit_bytes),
          fields);
    default:
      if (refusal.deficit_bytes > 0) {
        return proto::MakeError(
            v1::BAD_REQUEST,
            absl::StrCat(
                "the guarantee is above the limit: raise the limit or lower "
                "the guarantee: device=",
                device, " above_bytes=", refusal.deficit_bytes),
            {.deficit_bytes = refusal.deficit_bytes, .field = "guarantee"});
      }
      return proto::MakeError(v1::BAD_REQUEST,
                              "guarantee and limit are bytes, or a fraction "
                              "from 0 to 1, and the weight "
                              "is above 0",
                              {.field = "quota"});
  }
}

absl::Status StillLeased(absl::string_view tenant, uint64_t bytes) {
  return proto::MakeError(
      v1::BAD_STATE,
      absl::StrCat("its sessions have ended, and what they had is still on its "
                   "way back: delete the tenant again, or with --wait: tenant=",
                   tenant, " bytes=", proto::FormatBytes(bytes)),
      {.deficit_bytes = bytes, .retry_after = absl::Seconds(1)});
}

absl::Status UidOfAnother(uint32_t uid, absl::string_view owner) {
  return proto::MakeError(
      v1::BAD_REQUEST,
      absl::StrCat("a uid belongs to one tenant: take it from tenant ", owner,
                   " first, or name another: uid=", uid),
      {.field = "uids"});
}

absl::Status ComesToNothing(absl::string_view field,
                            const quota::Amount& amount,
                            uint64_t granule_bytes) {
  const std::string granule =
      absl::StrCat("less than one granule (", proto::FormatBytes(granule_bytes),
                   ") comes to nothing: ");
  const std::string instead =
      amount.is_fraction()
          ? absl::StrCat("write a larger share, or 0 if nothing is meant: ",
                         field, "=", 100 * amount.fraction(), "%")
          : absl::StrCat("write ", proto::LikelyMeant(amount.bytes()),
                         ", or 0 if nothing is meant: ", field, "=",
                         amount.bytes());
  return proto::MakeError(v1::BAD_REQUEST, absl::StrCat(granule, instead),
                          {.field = field});
}

absl::Status NotBroughtBack(const absl::Status& why) {
  return proto::MakeError(
      v1::DEVICE_ERROR,
      absl::StrCat("a lease could not be brought back; contents are kept, "
                   "try again: ",
                   why.message()),
      {.retry_after = absl::Milliseconds(500)});
}

absl::Status Leaving(absl::string_view name) {
  return proto::MakeError(
      v1::DRAINING,
      absl::StrCat("the tenant is being deleted: release what it holds and "
                   "end: tenant=",
                   name));
}

absl::Status CheckStays(const State& state, quota::TenantId tenant) {
  if (!state.departures->contains(tenant)) return absl::OkStatus();
  return Leaving(state.TenantAt(tenant).policy.name);
}

}  // namespace gmb::broker
