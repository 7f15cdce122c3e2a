// Why a tenant has, or lacks, its memory: for `gmb why`.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/refusals.h"
#include "broker/machine/verdict_walk.h"
#include "broker/machine/wire_form.h"
#include "broker/report/attaching.h"
#include "broker/report/report.h"
#include "broker/report/session_sentences.h"
#include "broker/report/stuck_text.h"
#include "broker/report/tenant_report.h"
#include "proto/amount_text.h"
#include "quota/must_find.h"

namespace gmb::broker::report {
namespace {

// Sentences about single requests; more of them are counted.
constexpr size_t kMostSentences = 16;

// Says what its waiting requests wait for, and who is before them or in their
// way.
std::vector<std::string> WaitFindings(const State& state,
                                      const quota::Explanation& explanation,
                                      quota::Instant now) {
  std::vector<std::string> findings;
  for (const quota::WaitingView& waiting : explanation.waiting) {
    if (findings.size() == kMostSentences) break;
    if (waiting.blocked_by == quota::Reason::kTenantLimit) {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for its own limit: ",
          proto::FormatBytes(waiting.deficit_bytes),
          " of its own leases must be released, or the limit raised"));
    } else if (waiting.claimed) {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for its turn: it fits what is free, and that is kept for "
          "requests that are served first"));
    } else {
      findings.push_back(absl::StrCat(
          "a request of ", proto::FormatBytes(waiting.bytes),
          " waits for memory: ", proto::FormatBytes(waiting.deficit_bytes),
          " more must be released by others"));
    }
  }
  if (explanation.all_waiting > findings.size()) {
    findings.push_back(
        absl::StrCat(explanation.all_waiting - findings.size(),
                     " more requests of its own wait behind these"));
  }
  for (const quota::ClaimView& claim : explanation.claims) {
    const Tenant* owner = state.tenants->Find(claim.tenant);
    if (owner == nullptr) continue;
    const std::string waits = absl::StrCat(owner->policy.name, " waits for ",
                                           proto::FormatBytes(claim.bytes));
    if (claim.within_guarantee) {
      findings.push_back(absl::StrCat(
          waits, " within its guarantee: nobody borrows what that needs"));
      continue;
    }
    const quota::Nanoseconds left =
        std::max(claim.until - now, quota::Nanoseconds(0));
    findings.push_back(absl::StrCat(
        waits,
        " and claims what comes free: requests behind it that would take of "
        "that pass again in ",
        absl::FormatDuration(
            absl::Ceil(absl::FromChrono(left), absl::Milliseconds(100)))));
  }
  if (!explanation.waiting.empty() && explanation.waiting_before > 0) {
    findings.push_back(
        absl::StrCat(explanation.waiting_before,
                     " requests of other tenants are served first"));
  }
  if (!explanation.waiting.empty()) {
    for (const quota::Borrower& borrower : explanation.borrowers) {
      const Tenant* other = state.tenants->Find(borrower.tenant);
      if (other == nullptr) continue;
      findings.push_back(absl::StrCat(
          other->policy.name, " borrows ",
          proto::FormatBytes(borrower.borrowed_bytes), " above its guarantee"));
    }
  }
  return findings;
}

// Empty: none is.
std::string PutOffText(const PutOffs::Sum& put_off) {
  if (put_off.requests == 0) return "";
  return absl::StrCat(
      "put off, because the broker's keeper did not answer: ", put_off.requests,
      put_off.requests == 1 ? " request" : " requests", " of its own, of ",
      proto::FormatBytes(put_off.bytes),
      "; each is asked for again every second at least, until it gives up");
}

// Sentences about one tenant on one pool, most important first.
void AddFindings(const State& state, const Tenant& tenant, const Pool& pool,
                 quota::Instant now, const quota::Explanation& explanation,
                 v1::ExplainResponse* response) {
  const quota::TenantPoolView view =
      *state.engine->TenantPool(tenant.id, pool.id);
  auto add = [&](const std::string& sentence) {
    response->add_findings(absl::StrCat(pool.uuid(), ": ", sentence));
  };
  if (!pool.device->problem.empty()) add(pool.device->problem);
  if (explanation.draining) add("the pool is draining and makes no new grants");
  if (view.over_limit_bytes > 0) {
    add(absl::StrCat("over its limit by ",
                     proto::FormatBytes(view.over_limit_bytes),
                     ": new requests are refused until that is released"));
  }
  if (view.effective_guarantee_bytes < view.requested_guarantee_bytes) {
    add(absl::StrCat(
        "its guarantee is pending: ",
        proto::FormatBytes(view.effective_guarantee_bytes), " of ",
        proto::FormatBytes(view.requested_guarantee_bytes),
        " are in force; the rest is held by others and comes as they release"));
  }
  const auto stuck = pool.device->reading.stuck.find(tenant.id);
  const uint64_t stuck_bytes =
      stuck == pool.device->reading.stuck.end() ? 0 : stuck->second.bytes;
  if (stuck_bytes > 0) add(StuckText(stuck->second));
  if (view.unreturned_bytes > stuck_bytes) {
    add(absl::StrCat(proto::FormatBytes(view.unreturned_bytes - stuck_bytes),
                     " were released but are still held by one of its "
                     "processes; they are charged "
                     "to it and come back when that process lets go or dies"));
  }
  if (view.unreturned_bytes > 0 &&
      pool.device->reading.unreturned_outside_bytes > 0) {
    add(absl::StrCat(
        "of all unreturned bytes the driver shows ",
        proto::FormatBytes(pool.device->reading.unreturned_outside_bytes),
        " in processes without a session, which took them while they changed "
        "hands; `gmb doctor` names these: end them"));
  }
  for (const std::string& sentence : WaitFindings(state, explanation, now))
    add(sentence);
  if (explanation.kept_for_guarantees_bytes > 0) {
    add(absl::StrCat(proto::FormatBytes(explanation.kept_for_guarantees_bytes),
                     " are free but kept for the guarantees of other tenants"));
  }
  if (explanation.missing_bytes > 0) {
    add(absl::StrCat(
        proto::FormatBytes(explanation.missing_bytes),
        " of the pool are missing: processes outside the broker took them, or "
        "clients of deleted tenants keep them; `gmb doctor` says which"));
  }
  if (explanation.shrinking_bytes > 0) {
    add(absl::StrCat("the pool is shrinking: ",
                     proto::FormatBytes(explanation.shrinking_bytes),
                     " are still to be released"));
  }
  const bool keeper_is_silent = pool.device->reading.destroyed_is_kept;
  if (keeper_is_silent) {
    add("the broker's keeper does not answer, and still has memory that was "
        "given back: what needs slabs of other sizes than the ready ones waits "
        "for it");
  }
  const std::string put_off =
      PutOffText(state.put_off->SumOf(tenant.id, pool.id));
  if (!put_off.empty()) add(put_off);
  if (explanation.waiting.empty() && put_off.empty() && !keeper_is_silent) {
    add(absl::StrCat("no request waits for memory; ",
                     proto::FormatBytes(view.obtainable_bytes),
                     " could be leased at once"));
  }
}

// Why the leases of others stay where they are while this tenant waits: looked
// for if it lacks bytes there.
std::optional<VerdictWalk> BeginWalk(const State& state, const Tenant& tenant,
                                     const Pool& pool, quota::Instant now,
                                     v1::ExplainResponse* response) {
  const auto shortage = ShortageIn(state, pool.id, true);
  if (!shortage.has_value() || shortage->tenant != tenant.id)
    return std::nullopt;
  response->add_findings(absl::StrCat(
      pool.uuid(), ": ", proto::FormatBytes(shortage->lacking_bytes),
      " have to be taken from others; reclaim "));
  return std::make_optional<VerdictWalk>(DemandOf(state, *shortage, now));
}

// The last sentence is ended by what the walk has found.
void EndWalk(const State& state, const Pool& pool, quota::Instant now,
             VerdictWalk* walk, v1::ExplainResponse* response) {
  const VerdictWalk::Found found = walk->Finish(state, now);
  absl::StrAppend(
      response->mutable_findings(response->findings_size() - 1),
      found.plan.empty()
          ? std::string("finds nothing that it may take now")
          : absl::StrCat("can take ",
                         proto::FormatBytes(found.plan.planned_bytes)));
  for (const std::string& sentence : found.sentences)
    response->add_findings(absl::StrCat(pool.uuid(), ": ", sentence));
}

// Rows are by pool, and within one by arrival; those that are put off come after
// all that are in the queue.
std::string KeyOf(const Pool& pool, uint64_t place) {
  return report::KeyOf({pool.id.value, place});
}

constexpr uint64_t kPutOffPlaces = uint64_t{1} << 63;

void AddWaiting(const std::vector<quota::WaitingView>& waiting,
                const Pool& pool, quota::Instant now, Page* page,
                v1::ExplainResponse* response) {
  for (const quota::WaitingView& view : waiting) {
    v1::WaitingRequest* request = response->add_waiting();
    request->set_session_id(view.session.value);
    request->set_device(pool.uuid());
    request->set_bytes(view.bytes);
    *request->mutable_waited() = ToProto(now - view.since);
    *request->mutable_remaining() = ToProto(view.deadline - now);
    request->set_blocked_by(ToProto(view.blocked_by));
    request->set_deficit_bytes(view.deficit_bytes);
    page->after = KeyOf(pool, view.place);
  }
}

void AddPutOff(const State& state, const Tenant& tenant, const Pool& pool,
               uint64_t after_place, size_t most, quota::Instant now,
               Page* page, v1::ExplainResponse* response) {
  const auto after =
      after_place < kPutOffPlaces
          ? std::nullopt
          : std::make_optional(quota::RequestId{after_place - kPutOffPlaces});
  for (const quota::RequestId id :
       state.put_off->Of(tenant.id, pool.id, after, most)) {
    const PendingAcquire& asked =
        quota::MustFind(*state.pending, id, "request");
    const auto left = [&](quota::Instant until) {
      return ToProto(std::max(until - now, quota::Nanoseconds(0)));
    };
    v1::WaitingRequest* request = response->add_waiting();
    request->set_session_id(asked.session);
    request->set_device(pool.uuid());
    request->set_bytes(asked.bytes);
    *request->mutable_waited() = ToProto(now - asked.asked);
    *request->mutable_remaining() = left(asked.deadline);
    request->set_blocked_by(v1::POOL_EXHAUSTED);
    request->set_deficit_bytes(asked.bytes);
    *request->mutable_asked_again_in() = left(*asked.ask_again_at);
    page->after = KeyOf(pool, kPutOffPlaces + id.value);
  }
}

// All but the waiting requests: one pool a slice at most.
void AddFirst(const State& state, const Tenant& tenant, quota::Instant now,
              WhyTheyStay* why, v1::ExplainResponse* response) {
  if (!response->has_tenant())
    *response->mutable_tenant() = OfTenant(state, tenant);
  if (why->walk.has_value()) {
    if (!why->walk->GoOn(state, now, kLooksASlice)) return;
    EndWalk(state, state.PoolAt(why->pool), now, &*why->walk, response);
    why->walk.reset();
    return;
  }
  const auto next = state.pools->upper_bound(why->pool);
  if (next == state.pools->end()) {
    AddAttaching(state, tenant, now, response);
    AddSessionSentences(state, tenant, now, why->waits, response);
    why->done = true;
    return;
  }
  const Pool& pool = *next->second;
  why->pool = pool.id;
  const std::optional<quota::Explanation> explanation =
      state.engine->Explain(tenant.id, pool.id, {.most = kMostSentences});
  if (!explanation.has_value()) return;
  AddFindings(state, tenant, pool, now, *explanation, response);
  why->waits |= !explanation->waiting.empty() ||
                state.put_off->SumOf(tenant.id, pool.id).requests > 0;
  why->walk = BeginWalk(state, tenant, pool, now, response);
}

}  // namespace

absl::Status AddExplanation(const State& state, absl::string_view tenant_name,
                            quota::Instant now, Page* page, size_t most_rows,
                            WhyTheyStay* why, v1::ExplainResponse* response) {
  const Tenant* tenant = state.tenants->Find(tenant_name);
  if (tenant == nullptr) return NoSuchTenant(tenant_name);
  if (page->first() && !why->done) {
    AddFirst(state, *tenant, now, why, response);
    return absl::OkStatus();
  }
  const uint64_t after_pool = NumberIn(page->after, 0);
  uint64_t after_place = NumberIn(page->after, 1);
  const size_t before = static_cast<size_t>(response->waiting_size());
  for (auto it = state.pools->lower_bound(quota::PoolId{after_pool});
       it != state.pools->end(); ++it) {
    if (it->first.value != after_pool) after_place = 0;
    const auto room = [&] {
      return most_rows -
             (static_cast<size_t>(response->waiting_size()) - before);
    };
    AddWaiting(
        state.engine->WaitingOf(tenant->id, it->first,
                                {.after_place = after_place, .most = room()}),
        *it->second, now, page, response);
    AddPutOff(state, *tenant, *it->second, after_place, room(), now, page,
              response);
    if (room() == 0) return absl::OkStatus();
  }
  page->more = false;
  return absl::OkStatus();
}

}  // namespace gmb::broker::report
