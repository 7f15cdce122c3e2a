// `gmb hold`: what is done with all of its leases, a line each.
#include "client/cli/hold/lease_steps.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

absl::Status VerifyOne(const FilledLease& filled, StepLog* log) {
  GMB_RETURN_IF_ERROR(filled.Verify());
  log->Say("verified",
           absl::StrCat(SizeText(filled.lease().size_bytes()), " of lease ",
                        filled.lease().id(), ", checksum ",
                        Checksum::Text(filled.checksum())),
           {{"lease_id", filled.lease().id()},
            {"bytes", filled.lease().size_bytes()},
            {"checksum", Checksum::Text(filled.checksum())}});
  return absl::OkStatus();
}

absl::Status FillAgain(FilledLease* filled, StepLog* log) {
  GMB_RETURN_IF_ERROR(filled->Write());
  log->Say("discarded",
           absl::StrCat("the contents of lease ", filled->lease().id(),
                        ", as they may be; written anew"),
           {{"lease_id", filled->lease().id()},
            {"checksum", Checksum::Text(filled->checksum())}});
  return absl::OkStatus();
}

// A deadline of our own is no sign that the broker is not there.
absl::Status NotWoken(const absl::Status& status, absl::Duration wait) {
  if (!absl::IsDeadlineExceeded(status) || GetErrorDetail(status).has_value())
    return status;
  return absl::ResourceExhaustedError(
      absl::StrCat("the memory did not come back within ", DurationText(wait),
                   ": give it longer with --wait; `gmb why TENANT` shows what "
                   "stands in the way: ",
                   status.message()));
}

}  // namespace

absl::Status VerifyAll(const std::vector<FilledLease>& leases, StepLog* log) {
  for (const FilledLease& filled : leases) {
    GMB_RETURN_IF_ERROR(VerifyOne(filled, log));
  }
  return absl::OkStatus();
}

absl::Status VerifyMapped(Contents contents, std::vector<FilledLease>* leases,
                          StepLog* log) {
  for (auto filled = leases->begin(); filled != leases->end();) {
    const absl::Status status = VerifyOne(*filled, log);
    if (status.ok()) {
      ++filled;
      continue;
    }
    if (!absl::IsFailedPrecondition(status)) return status;
    const uint64_t id = filled->lease().id();
    const absl::string_view why = contents == Contents::kDiscard
                                      ? "its contents were discarded"
                                      : "its contents were in the host pool";
    log->Say("lost", absl::StrCat("lease ", id, ": ", why),
             {{"lease_id", id}, {"why", why}});
    filled = leases->erase(filled);
  }
  return absl::OkStatus();
}

absl::Status SealAll(std::vector<FilledLease>* leases, StepLog* log) {
  for (FilledLease& filled : *leases) {
    GMB_RETURN_IF_ERROR(filled.Seal());
    const uint64_t id = filled.lease().id();
    log->Say("sealed", absl::StrCat("lease ", id), {{"lease_id", id}});
  }
  return absl::OkStatus();
}

absl::Status ReleaseAll(std::vector<FilledLease>* leases, StepLog* log) {
  for (FilledLease& filled : *leases) {
    const uint64_t id = filled.lease().id();
    GMB_RETURN_IF_ERROR(std::move(filled).Release());
    log->Say("released", absl::StrCat("lease ", id), {{"lease_id", id}});
  }
  leases->clear();
  return absl::OkStatus();
}

absl::Status WakeAll(Client* client, Contents contents, absl::Duration wait,
                     std::vector<FilledLease>* leases, StepLog* log) {
  const absl::Time asked = absl::Now();
  const absl::StatusOr<Scope> scope = client->Enter(wait);
  if (!scope.ok()) return NotWoken(scope.status(), wait);
  const absl::Duration took = absl::Now() - asked;
  log->Say("woken", absl::StrCat("in ", DurationText(took)),
           {{"took", absl::ToDoubleSeconds(took)}});
  for (FilledLease& filled : *leases) {
    absl::Status status = VerifyOne(filled, log);
    if (absl::IsDataLoss(status) && contents == Contents::kDiscard)
      status = FillAgain(&filled, log);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gmb::cli
