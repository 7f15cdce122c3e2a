// Which sessions a plan may ask to trim, and for how much.
#include "broker/machine/trimmer_rows.h"

#include <algorithm>
#include <utility>

#include "broker/machine/reclaim_rows.h"
#include "quota/candidate.h"

namespace gmb::broker {
namespace {

// The bytes that a session could give back in a pool, as it says, or those that
// it was asked for there.
struct Trims {
  uint64_t trimmable_bytes = 0;
  uint64_t trimming_bytes = 0;
  [[nodiscard]] bool any() const {
    return trimmable_bytes + trimming_bytes > 0;
  }
};

Trims TrimsOf(const State& state, const SessionTrims& its, quota::PoolId pool,
              quota::Instant now) {
  if (its.trim.has_value()) {
    const Pool* asked = state.FindPool(its.trim->device());
    if (asked == nullptr || asked->id != pool || now >= its.trim_by) return {};
    const uint64_t bytes = its.trim->bytes();
    return {.trimmable_bytes = 0,
            .trimming_bytes = bytes - std::min(bytes, its.trim_given_bytes)};
  }
  const auto said = its.trimmable.find(pool);
  if (said == its.trimmable.end()) return {};
  const auto back_off = its.trim_back_off.find(pool);
  const bool counts =
      back_off == its.trim_back_off.end() || now >= back_off->second.until;
  return {.trimmable_bytes = counts ? said->second : 0, .trimming_bytes = 0};
}

}  // namespace

TrimmerRows::TrimmerRows(const State& state, quota::PoolId pool,
                         quota::Instant now, std::vector<quota::LeaseRow>* rows)
    : state_(state), pool_(pool), now_(now), rows_(rows) {
  for (size_t i = 0; i < rows_->size(); ++i) row_of_[(*rows_)[i].lease] = i;
}

// Of one tenant's demand others are not asked, however many they are.
void TrimmerRows::Add(const quota::Demand& demand, uint64_t from) {
  AddAsked(demand);
  if (quota::RulesOf(demand.cause).one_tenant) {
    AddAmong(state_.sessions->OfTenant(demand.tenant), from);
    next_ = from;  // the turns of all are as they were
  } else {
    AddAmong(*state_.trimmers, from);
  }
}

void TrimmerRows::AddAsked(const quota::Demand& demand) {
  const bool one_tenant = quota::RulesOf(demand.cause).one_tenant;
  size_t most = kMostLookedAt;
  for (const uint64_t id : *state_.trimming) {
    if (most-- == 0) return;
    ++looks_;
    if (!one_tenant || state_.SessionAt(id).tenant == demand.tenant)
      (void)AddOne(id);
  }
}

template <typename Sessions>
void TrimmerRows::AddAmong(const Sessions& sessions, uint64_t from) {
  const size_t most = std::min(sessions.size(), kMostLookedAt);
  auto it = sessions.lower_bound(from);
  size_t seen = 0;
  for (size_t i = 0; i < most && seen < kMostSeen; ++i, ++it) {
    if (it == sessions.end()) it = sessions.begin();
    if (state_.trimming->contains(*it)) continue;
    ++looks_;
    if (AddOne(*it)) ++seen;
  }
  next_ = it == sessions.end() ? 0 : *it;
}

bool TrimmerRows::AddOne(uint64_t id) {
  const Session* session = state_.sessions->Find(id);
  if (session == nullptr) return false;
  const Trims trims = TrimsOf(state_, *session->trims, pool_, now_);
  if (!trims.any()) return false;
  const auto lease = state_.reclaim->FirstOwn(pool_, id);
  if (!lease.has_value()) return false;
  const auto known = row_of_.find(*lease);
  if (known != row_of_.end()) {
    quota::LeaseRow& row = (*rows_)[known->second];
    row.trimmable_bytes = trims.trimmable_bytes;
    row.trimming_bytes = trims.trimming_bytes;
    return true;
  }
  ++looks_;
  quota::LeaseRow row = RowOf(state_, state_.LeaseAt(*lease), now_, &groups_);
  row.gate = quota::Gate::kOff;
  // Nobody knows when one without a gate uses its memory.
  if (!session->gate->on()) row.idle_since = {};
  row.trimmable_bytes = trims.trimmable_bytes;
  row.trimming_bytes = trims.trimming_bytes;
  rows_->push_back(std::move(row));
  return true;
}

}  // namespace gmb::broker
