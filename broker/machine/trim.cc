// Memory that programs give back by themselves: who is asked, and what comes of
// it (docs/reclaim.md).
#include <algorithm>
#include <chrono>
#include <utility>

#include "broker/machine/news.h"
#include "broker/machine/reclaimer.h"
#include "broker/machine/wire_form.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// A session that gave less than it had said is not counted on for so long, or
// until it has given the rest.
constexpr quota::Nanoseconds kBackOff = std::chrono::seconds(10);

// Of the devices that a SetTrimmable names, so many are read: few brokers have
// more.
constexpr int kMostDevicesNamed = 64;

}  // namespace

// The first plan that counts on trims says until when they are waited for.
void Reclaimer::RememberTrims(quota::RequestId request, const quota::Plan& plan,
                              Pool* pool) {
  if (plan.trim_by == quota::Instant::Max()) return;
  auto& trim_by = pool->plan.Edit({}).trim_by;
  if (trim_by.emplace(request, plan.trim_by).second) ForgetTrims(pool);
}

// Of requests that wait no longer.
void Reclaimer::ForgetTrims(Pool* pool) {
  absl::erase_if(pool->plan.Edit({}).trim_by, [this](const auto& entry) {
    return !state_.engine->IsWaiting(entry.first);
  });
}

void Reclaimer::CountTrimmed(Session* session, const Lease& lease) {
  const bool stays = lease.sharing->shared &&
                     (lease.move->mappings.size() > 1 ||
                      (lease.request.keep && !lease.sharing->dropped));
  if (stays || lease.move->residence == Residence::kEvicted) return;
  const quota::PoolId pool = lease.request.pool;
  if (session->trims->trim.has_value()) {
    const Pool* asked = state_.FindPool(session->trims->trim->device());
    if (asked != nullptr && asked->id == pool)
      session->trims.Edit({}).trim_given_bytes += lease.bytes;
    return;
  }
  // Late, and still what it was asked for.
  auto& back_offs = session->trims.Edit({}).trim_back_off;
  const auto back_off = back_offs.find(pool);
  if (back_off == back_offs.end()) return;
  uint64_t& owed_bytes = back_off->second.owed_bytes;
  owed_bytes -= std::min(owed_bytes, lease.bytes);
  if (owed_bytes > 0) return;
  back_offs.erase(back_off);
  index_.MarkChanged(pool, *session->tenant);
}

void Reclaimer::AskToTrim(const quota::TrimTarget& target, quota::Instant by,
                          Turn& turn) {
  Session* session = state_.sessions->Find(target.session.value);
  if (session == nullptr || session->trims->trim.has_value()) return;
  // Asked once; the program says anew what it has after that.
  session->trims.Edit({}).trimmable.erase(target.pool);
  v1::BrokerMessage message;
  v1::Trim* trim = message.mutable_trim();
  trim->set_trim(++session->trims.Edit({}).last_trim);
  trim->set_device(state_.PoolAt(target.pool).uuid());
  trim->set_bytes(target.bytes);
  *trim->mutable_within() =
      ToProto(std::max(by - turn.now(), quota::Nanoseconds(0)));
  session->trims.Edit({}).trim = *trim;
  state_.trimming.Edit({}).insert(session->id);
  session->trims.Edit({}).trim_by = by;
  session->trims.Edit({}).trim_given_bytes = 0;
  v1::Event event = NewEvent(state_, "trim_asked", session->tenant);
  event.set_session_id(session->id);
  event.set_device(trim->device());
  event.set_bytes(trim->bytes());
  turn.Publish(std::move(event));
  sessions_.Say(session, std::move(message), turn);
}

void Reclaimer::OnTrimmed(Session* session, const v1::Trimmed& trimmed,
                          Turn& turn) {
  if (!session->trims->trim.has_value() ||
      session->trims->trim->trim() != trimmed.trim()) {
    return;
  }
  if (const Pool* pool = state_.FindPool(session->trims->trim->device())) {
    const quota::Instant now = turn.now();
    index_.MarkChanged(pool->id, *session->tenant);
    const uint64_t given_bytes = session->trims->trim_given_bytes;
    if (given_bytes < session->trims->trim->bytes()) {
      session->trims.Edit({}).trim_back_off[pool->id] = {
          .until = now + kBackOff,
          .owed_bytes = session->trims->trim->bytes() - given_bytes};
    }
  }
  v1::Event event = NewEvent(state_, "trim_answered", session->tenant);
  event.set_session_id(session->id);
  event.set_device(session->trims->trim->device());
  if (trimmed.busy()) event.set_message("it could not look after it in time");
  turn.Publish(std::move(event));
  session->trims.Edit({}).trim.reset();
  state_.trimming.Edit({}).erase(session->id);
  // Nothing of it could be asked for meanwhile.
  for (const auto& [pool, bytes] : session->trims->trimmable)
    index_.MarkChanged(pool, *session->tenant);
  if (session->trims->trimmable.empty())
    state_.trimmers.Edit({}).erase(session->id);
}

void Reclaimer::SetTrimmable(Session* session,
                             const v1::SetTrimmable& trimmable) {
  auto& its = session->trims.Edit({}).trimmable;
  const auto before = std::exchange(its, {});
  const int devices = std::min(trimmable.devices_size(), kMostDevicesNamed);
  for (int i = 0; i < devices; ++i) {
    const auto& device = trimmable.devices(i);
    const Pool* pool = state_.FindPool(device.device());
    if (pool == nullptr || device.bytes() == 0) continue;
    its[pool->id] = std::min(device.bytes(), quota::kMaxPoolBytes);
  }
  if (!its.empty()) {
    state_.trimmers.Edit({}).insert(session->id);
  } else if (!session->trims->trim.has_value()) {
    state_.trimmers.Edit({}).erase(session->id);
  }
  // Less than it said before helps nobody.
  for (const auto& [pool, bytes] : its) {
    const auto said = before.find(pool);
    if (said == before.end() || said->second < bytes)
      index_.MarkChanged(pool, *session->tenant);
  }
}

void Reclaimer::Forget(const Session& session) {
  state_.trimmers.Edit({}).erase(session.id);
  state_.trimming.Edit({}).erase(session.id);
}

}  // namespace gmb::broker
