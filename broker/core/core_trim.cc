// Memory that programs give back by themselves: who is asked, and what comes of
// it (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/types/span.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/wire_form.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// A session that gave less than it had said is not counted on for so long, or
// until it has given the rest.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

}  // namespace

// What the session could give back, or was asked for: each pool's once, on one
// of its leases there.
void Core::AddTrims(const Session& session, quota::Instant now,
                    absl::Span<quota::LeaseRow> rows) const {
  const auto row_of = [&](quota::PoolId pool) {
    return std::find_if(
        rows.begin(), rows.end(),
        [pool](const quota::LeaseRow& row) { return row.pool == pool; });
  };
  if (session.trim.has_value()) {
    const Pool* pool = FindPool(session.trim->device());
    if (pool == nullptr || now >= session.trim_by) return;
    const auto row = row_of(pool->id);
    const uint64_t bytes = session.trim->bytes();
    if (row != rows.end())
      row->trimming_bytes = bytes - std::min(bytes, session.trim_given_bytes);
    return;
  }
  for (const auto& [pool, bytes] : session.trimmable) {
    const auto back_off = session.trim_back_off.find(pool);
    if (back_off != session.trim_back_off.end() && now < back_off->second.until)
      continue;
    const auto row = row_of(pool);
    if (row != rows.end()) row->trimmable_bytes = bytes;
  }
}

// The first plan that counts on trims says until when they are waited for.
void Core::RememberTrims(quota::RequestId request, const quota::Plan& plan,
                         Pool* pool) const {
  if (plan.trim_by == quota::Instant::Max()) return;
  if (!pool->trim_by.emplace(request, plan.trim_by).second) return;
  for (auto it = pool->trim_by.begin(); it != pool->trim_by.end();) {
    const auto entry = it++;
    if (!engine_.IsWaiting(entry->first)) pool->trim_by.erase(entry);
  }
}

// Of a lease that its session gives back.
void Core::CountTrimmed(Session* session, const Lease& lease) {
  const bool stays = lease.shared && (lease.mappings.size() > 1 ||
                                      (lease.request.keep && !lease.dropped));
  if (stays || lease.residence == Residence::kEvicted) return;
  const quota::PoolId pool = lease.request.pool;
  if (session->trim.has_value()) {
    const Pool* asked = FindPool(session->trim->device());
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
  pools_.at(pool)->replan_at = deps_.clock->Now();
}

void Core::AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                     Afterwards* after) {
  Session* session = sessions_.Find(target.session.value);
  if (session == nullptr || session->trim.has_value()) return;
  // Asked once; the program says anew what it has after that.
  session->trimmable.erase(target.pool);
  v1::BrokerMessage message;
  v1::Trim* trim = message.mutable_trim();
  trim->set_trim(++session->last_trim);
  trim->set_device(pools_.at(target.pool)->uuid());
  trim->set_bytes(target.bytes);
  *trim->mutable_within() =
      ToProto(std::max(by - deps_.clock->Now(), quota::Nanoseconds(0)));
  session->trim = *trim;
  session->trim_by = by;
  session->trim_given_bytes = 0;
  v1::Event event = NewEvent("trim_asked", session->tenant);
  event.set_session_id(session->id);
  event.set_device(trim->device());
  event.set_bytes(trim->bytes());
  deps_.events->Publish(std::move(event));
  Say(session, std::move(message), after);
}

void Core::OnTrimmed(Session* session, const v1::Trimmed& trimmed) {
  if (!session->trim.has_value() || session->trim->trim() != trimmed.trim()) {
    return;
  }
  if (Pool* pool = FindPool(session->trim->device())) {
    const quota::Instant now = deps_.clock->Now();
    pool->replan_at = now;
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
  deps_.events->Publish(std::move(event));
  session->trim.reset();
}

void Core::SetTrimmable(Session* session, const v1::SetTrimmable& trimmable) {
  session->trimmable.clear();
  for (const auto& device : trimmable.devices()) {
    const Pool* pool = FindPool(device.device());
    if (pool == nullptr || device.bytes() == 0) continue;
    session->trimmable[pool->id] =
        std::min(device.bytes(), quota::kMaxPoolBytes);
  }
}

}  // namespace gmb::broker
