// Peers that are refused a session leave a trace.
#include "broker/daemon/refusal_log.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"
#include "gmb/v1/types.pb.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

std::string DoorName(const PeerIdentity& peer) {
  switch (peer.origin) {
    case Origin::kTenantDirectory:
      return "the tenant's socket";
    case Origin::kAdmin:
      return "the operators' socket";
    case Origin::kShared:
      break;
  }
  return peer.tenant_token.empty() ? "the shared socket"
                                   : "the shared socket, with a token";
}

}  // namespace

std::string ReasonName(const absl::Status& why) {
  const auto detail = proto::GetErrorDetail(why);
  return detail.has_value() ? v1::ErrorReason_Name(detail->reason())
                            : absl::StatusCodeToString(why.code());
}

void RefusalLog::Add(const PeerIdentity& peer, const absl::Status& why,
                     absl::Time now) {
  const std::string reason = ReasonName(why);
  const std::optional<uint64_t> left_out = limit_.Admit(reason, now);
  if (!left_out.has_value()) return;
  v1::Event event;
  *event.mutable_at() = ToProto(now);
  event.set_kind("session_refused");
  event.set_tenant(peer.tenant_directory);
  event.set_message(absl::StrCat(
      "uid ", peer.uid, ", pid ", peer.pid, " (", peer.program, ") on ",
      DoorName(peer), ": ", reason, ": ", why.message(),
      *left_out > 0 ? absl::StrCat(" (", *left_out, " more were left out)")
                    : ""));
  events_->Publish(std::move(event));
  events_->Wake();
}

}  // namespace gmb::broker
