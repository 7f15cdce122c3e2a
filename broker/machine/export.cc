// Leases that other processes of the tenant map while they are written: legacy
// CUDA IPC, and handles that a program hands out (docs/shared.md).
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"
#include "broker/machine/refusals.h"
#include "broker/machine/sharing.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kKeyBytes = 16;

absl::Status CheckExport(const Session& session, const Lease& lease,
                         const std::string& key) {
  if (key.size() != kKeyBytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("an export's key has ", kKeyBytes, " bytes"),
        {.field = "key"});
  }
  if (lease.request.session != session.id) {
    return proto::MakeError(
        v1::BAD_STATE, "only the session that acquired a lease exports it");
  }
  if (!lease.request.share_as.empty() || lease.sharing->sealed) {
    return proto::MakeError(v1::BAD_STATE,
                            "a lease that is sealed, or has a name, is "
                            "attached to by that");
  }
  if (lease.move->residence != Residence::kResident || lease.move->torn) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat("the lease is not on the device: export it within a "
                     "scope: lease=",
                     lease.id.value));
  }
  return absl::OkStatus();
}

}  // namespace

void Sharing::Export(Session* session, uint64_t client_id,
                     const v1::Export& wanted, Turn& turn) {
  Lease* lease = FindLease(state_, *session, wanted.lease_id());
  if (lease == nullptr || lease->life->state == v1::LeaseInfo::CREATING) {
    return sessions_.Refuse(session, client_id, NoSuchLease(wanted.lease_id()),
                            turn);
  }
  absl::Status done = CheckExport(*session, *lease, wanted.key());
  if (done.ok() && !lease->exported())
    done = ExportNow(lease, wanted.key(), turn);
  if (!done.ok()) return sessions_.Refuse(session, client_id, done, turn);
  sessions_.SendSlabs(session, *lease, client_id, /*move=*/0, turn);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  FillGrant(state_, *lease, answer.mutable_grant());
  answer.mutable_grant()->set_export_key(lease->sharing->export_key);
  sessions_.Answer(session, std::move(answer), turn);
}

// Other processes may touch an exported lease's memory at any time, so it can
// never be taken: nobody may count on its bytes.
absl::Status Sharing::ExportNow(Lease* lease, const std::string& key,
                                Turn& turn) {
  if (!state_.engine->Lease(lease->id)->hard) {
    if (const auto refusal =
            quota_.TryToTell(quota::HardChanged{lease->id, true}, turn)) {
      const std::string& device = state_.PoolAt(lease->request.pool).uuid();
      if (refusal->reason != quota::Reason::kOvercommitted)
        return RefusalStatus(*refusal, device);
      return proto::MakeError(
          v1::OVERCOMMITTED,
          absl::StrCat("memory that other processes map stays on the device, "
                       "and guarantees of others rest on these bytes: release "
                       "memory, or lower a guarantee, first: device=",
                       device, " bytes=", lease->bytes),
          {.deficit_bytes = refusal->deficit_bytes});
    }
  }
  lease->sharing.Edit({}).export_key = key;
  host_.GiveUpRoom(lease);
  MakeTenants(lease, turn);
  Recorder(state_).Touch(lease->id);
  turn.Publish(LeaseEvent(state_, "lease_exported", *lease));
  return absl::OkStatus();
}

}  // namespace gmb::broker
