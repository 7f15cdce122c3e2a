// Events for the log and for operators that watch.
#include "broker/machine/news.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"

namespace gmb::broker {

v1::Event NewEvent(const State& state, absl::string_view kind,
                   std::optional<quota::TenantId> tenant) {
  v1::Event event;
  event.set_kind(std::string(kind));
  if (tenant.has_value()) {
    if (const Tenant* known = state.tenants->Find(*tenant))
      event.set_tenant(known->policy.name);
  }
  return event;
}

v1::Event LeaseEvent(const State& state, absl::string_view kind,
                     const Lease& lease) {
  v1::Event event = NewEvent(state, kind, lease.tenant);
  event.set_session_id(lease.request.session);
  event.set_lease_id(lease.id.value);
  event.set_device(state.PoolAt(lease.request.pool).uuid());
  event.set_bytes(lease.bytes);
  return event;
}

void PublishMove(const State& state, absl::string_view kind, const Lease& lease,
                 quota::Nanoseconds took, absl::string_view message,
                 Turn& turn) {
  v1::Event event = LeaseEvent(state, kind, lease);
  if (took.count() > 0) *event.mutable_took() = ToProto(took);
  // It may be a client's words, which end up on an operator's terminal.
  std::string printable(message);
  std::replace_if(printable.begin(), printable.end(), absl::ascii_iscntrl, ' ');
  event.set_message(std::move(printable));
  turn.Publish(std::move(event));
}

void PublishAttached(const State& state, absl::string_view kind,
                     const Session& session, const Lease& lease, Turn& turn) {
  v1::Event event = LeaseEvent(state, kind, lease);
  event.set_session_id(session.id);
  event.set_message(absl::StrCat(lease.move->mappings.size(), " attached to ",
                                 lease.request.share_as));
  turn.Publish(std::move(event));
}

}  // namespace gmb::broker
