// The end of a turn: what it has changed is written down, before anybody is
// told.
#include "broker/machine/recorder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "broker/machine/record_of.h"

namespace gmb::broker {
namespace {

template <typename Id>
std::vector<Id> TakeOnce(std::vector<Id>* named) {
  std::vector<Id> once = std::exchange(*named, {});
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  return once;
}

}  // namespace

void Recorder::Touch(quota::LeaseId lease) {
  if (state_.options.recorded)
    state_.record_news.Edit({}).leases.push_back(lease);
}

void Recorder::TouchSession(uint64_t session) {
  if (state_.options.recorded)
    state_.record_news.Edit({}).sessions.push_back(session);
}

void Recorder::TouchPool(quota::PoolId pool) {
  if (state_.options.recorded)
    state_.record_news.Edit({}).pools.push_back(pool);
}

void Recorder::SetHead(const HeadRecord& head) {
  state_.record_news.Edit({}).head = head;
  state_.record_news.Edit({}).head_is_new = true;
}

// Before the first id of a block is known to anybody.
void Recorder::WriteHead(RecordChanges* changes) {
  HeadRecord& head = state_.record_news.Edit({}).head;
  const uint64_t session = state_.sessions->next_id();
  const uint64_t lease = state_.engine->last_lease() + 1;
  const bool is_new =
      std::exchange(state_.record_news.Edit({}).head_is_new, false);
  if (!is_new && session <= head.session_ids_until &&
      lease <= head.lease_ids_until)
    return;
  head.session_ids_until =
      std::max(head.session_ids_until, session + kIdsAtOnce);
  head.lease_ids_until = std::max(head.lease_ids_until, lease + kIdsAtOnce);
  changes->head = head;
}

void Recorder::Write(RecordChanges* changes) {
  if (!state_.options.recorded) return;
  WriteHead(changes);
  RecordNews& news = state_.record_news.Edit({});
  for (const quota::PoolId id : TakeOnce(&news.pools))
    changes->pools.push_back(RecordOf(state_, state_.PoolAt(id)));
  for (const uint64_t id : TakeOnce(&news.sessions)) {
    const Session* session = state_.sessions->Find(id);
    if (session != nullptr && IsRecorded(*session)) {
      changes->sessions.push_back(RecordOf(state_, *session));
    } else {
      changes->ended_sessions.push_back(id);
    }
  }
  for (const quota::LeaseId id : TakeOnce(&news.leases)) {
    const auto lease = state_.leases->find(id);
    if (lease != state_.leases->end() && IsRecorded(*lease->second)) {
      changes->leases.push_back(RecordOf(state_, *lease->second));
    } else {
      changes->ended_leases.push_back(id.value);
    }
  }
}

}  // namespace gmb::broker
