// Memory that programs give back by themselves: who is asked, and what comes of
// it (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/types/span.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// A session that gave less than it had said is not counted on for so long, or
// until it has given the rest.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

}  // namespace

// The first plan that counts on trims says until when they are waited for.
void Machine::RememberTrims(quota::RequestId request, const quota::Plan& plan,
                            Pool* pool) const {
  if (plan.trim_by == quota::Instant::Max()) return;
  if (!pool->trim_by.emplace(request, plan.trim_by).second) return;
  for (auto it = pool->trim_by.begin(); it != pool->trim_by.end();) {
    const auto entry = it++;
    if (!state_.engine.IsWaiting(entry->first)) pool->trim_by.erase(entry);
  }
}

// Of a lease that its session gives back.
void Machine::CountTrimmed(Session* session, const Lease& lease) {
  const bool stays = lease.shared && (lease.mappings.size() > 1 ||
                                      (lease.request.keep && !lease.dropped));
  if (stays || lease.residence == Residence::kEvicted) return;
  const quota::PoolId pool = lease.request.pool;
  if (session->trim.has_value()) {
    const Pool* asked = state_.FindPool(session->trim->device());
    if (asked != nullptr && asked->id == pool)
      session->trim_given_bytes += lease.bytes;
    return;
  }
  // Late, and still what it was asked for.
  const auto back_off = session->trim_back_off.find(pool);
  if (back_off == session->trim_back_off.end()) return;
  uint64_t& owed_bytes = back_off->second.owed_bytes;
  owed_bytes -= std::min(owed_bytes, lease.bytes);
  if (owed_bytes > 0) return;
  session->trim_back_off.erase(back_off);
  state_.reclaim.MarkChanged(pool, *session->tenant);
}

void Machine::AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                        Turn& turn) {
  Session* session = state_.sessions.Find(target.session.value);
  if (session == nullptr || session->trim.has_value()) return;
  // Asked once; the program says anew what it has after that.
  session->trimmable.erase(target.pool);
  v1::BrokerMessage message;
  v1::Trim* trim = message.mutable_trim();
  trim->set_trim(++session->last_trim);
  trim->set_device(state_.PoolAt(target.pool).uuid());
  trim->set_bytes(target.bytes);
  *trim->mutable_within() =
      ToProto(std::max(by - turn.now(), quota::Nanoseconds(0)));
  session->trim = *trim;
  session->trim_by = by;
  session->trim_given_bytes = 0;
  v1::Event event = NewEvent("trim_asked", session->tenant);
  event.set_session_id(session->id);
  event.set_device(trim->device());
  event.set_bytes(trim->bytes());
  turn.Publish(std::move(event));
  Say(session, std::move(message), turn);
}

void Machine::OnTrimmed(Session* session, const v1::Trimmed& trimmed,
                        Turn& turn) {
  if (!session->trim.has_value() || session->trim->trim() != trimmed.trim()) {
    return;
  }
  if (const Pool* pool = state_.FindPool(session->trim->device())) {
    const quota::Instant now = turn.now();
    state_.reclaim.MarkChanged(pool->id, *session->tenant);
    const uint64_t given_bytes = session->trim_given_bytes;
    if (given_bytes < session->trim->bytes()) {
      session->trim_back_off[pool->id] = {
          .until = now + kBackOff,
          .owed_bytes = session->trim->bytes() - given_bytes};
    }
  }
  v1::Event event = NewEvent("trim_answered", session->tenant);
  event.set_session_id(session->id);
  event.set_device(session->trim->device());
  if (trimmed.busy()) event.set_message("it could not look after it in time");
  turn.Publish(std::move(event));
  session->trim.reset();
  if (session->trimmable.empty()) state_.trimmers.erase(session->id);
}

void Machine::SetTrimmable(Session* session,
                           const v1::SetTrimmable& trimmable) {
  session->trimmable.clear();
  if (!session->trim.has_value()) state_.trimmers.erase(session->id);
  for (const auto& device : trimmable.devices()) {
    const Pool* pool = state_.FindPool(device.device());
    if (pool == nullptr || device.bytes() == 0) continue;
    session->trimmable[pool->id] =
        std::min(device.bytes(), quota::kMaxPoolBytes);
    state_.trimmers.insert(session->id);
    state_.reclaim.MarkChanged(pool->id, *session->tenant);
  }
}

}  // namespace gmb::broker
