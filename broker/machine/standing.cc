// Memory that operators want back, by asking for it or by making room smaller.
#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/news.h"
#include "broker/machine/reclaimer.h"
#include "broker/machine/refusals.h"
#include "broker/machine/verdict_walk.h"
#include "broker/machine/wanted_back.h"
#include "broker/machine/wire_form.h"
#include "proto/amount_text.h"
#include "proto/error_status.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

// A plan has few victims; the next one is made after so long.
constexpr quota::Nanoseconds kStandingLook = std::chrono::milliseconds(20);

// Whether the look is over; else it goes on in a later turn.
bool LookFor(const State& state, const quota::Demand& demand, uint64_t changes,
             quota::Instant now, Lookout* lookout, Look* look) {
  const quota::Need& need = demand.needs.front();
  if (need.bytes == 0) {  // trims alone would help: no lease is looked for
    look->Skip(changes, now);
    return true;
  }
  if (!state.look_budget->MayTake()) {
    look->Postpone(now);
    return false;
  }
  if (!look->under_way() && !look->plans_on()) {
    if (!state.look_budget->MayBegin()) {
      look->Postpone(state.look_budget->NextAfter(now));
      return false;
    }
    look->Begin(demand, changes);
  }
  return !look->under_way() || lookout->GoOn(look, need.pool, now);
}

}  // namespace

void Reclaimer::AddStanding(std::vector<StandingDemand> demands, Turn& turn) {
  const auto key = [](const StandingDemand& demand) {
    return std::tuple(demand.cause, demand.pool, demand.tenant);
  };
  std::set<std::tuple<quota::Cause, quota::PoolId, quota::TenantId>> newer;
  for (const StandingDemand& demand : demands) newer.insert(key(demand));
  std::list<StandingDemand>& standing = state_.standing.Edit({});
  standing.remove_if([&](const StandingDemand& other) {
    return other.cause != quota::Cause::kOperator && newer.contains(key(other));
  });
  state_.standing_at.Edit({}) = turn.now();
  for (StandingDemand& demand : demands) {
    if (!IsOver(state_, demand)) standing.push_back(std::move(demand));
  }
}

void Reclaimer::ServeStanding(quota::Instant now, Turn& turn) {
  const bool woken = index_.TakeWoken();
  if (state_.standing->empty() || (!woken && now < *state_.standing_at)) return;
  quota::Instant& standing_at = state_.standing_at.Edit({});
  standing_at = quota::Instant::Max();
  state_.standing.Edit({}).remove_if([&](StandingDemand& demand) {
    if (ServeOne(&demand, now, turn)) return true;
    const bool goes_on = demand.look.under_way() || demand.why.has_value();
    const quota::Instant next =
        std::min(goes_on ? now : demand.look.next_at(), demand.deadline);
    standing_at = std::min(standing_at, next);
    if (!goes_on) index_.Sleep(demand.pool, demand.tenant);
    return false;
  });
}

// Whether it is over.
bool Reclaimer::ServeOne(StandingDemand* standing, quota::Instant now,
                         Turn& turn) {
  if (standing->why.has_value() && now < standing->deadline)
    return FindWhy(standing, turn);
  const bool of_tenant = standing->tenant.value != 0;
  const uint64_t changes =
      of_tenant ? state_.reclaim->changes(standing->pool, standing->tenant)
                : state_.reclaim->changes(standing->pool);
  if (!standing->look.IsDue(changes, now) && now < standing->deadline)
    return false;
  if (IsOver(state_, *standing) || now >= standing->deadline) {
    FinishStanding(standing, {}, turn);
    return true;
  }
  const uint64_t wanted = StillWanted(state_, *standing);
  standing->met = wanted == 0;
  const uint64_t incoming = state_.reclaim->IncomingBytes(
      standing->pool,
      of_tenant ? std::optional(standing->tenant) : std::nullopt, true);
  const uint64_t of_trims = WantedOfTrims(state_, *standing);
  if (std::max(wanted, of_trims) <= incoming) {
    standing->look.Skip(changes, now);
    return false;
  }
  if (LimitsTake(state_, *standing)) {
    standing->look.Postpone(now + kStandingLook);
    return false;
  }
  quota::Demand demand;
  demand.cause = standing->cause;
  demand.tenant = standing->tenant;
  demand.needs = {{.pool = standing->pool,
                   .bytes = wanted - std::min(wanted, incoming),
                   .trim_bytes = of_trims - std::min(of_trims, incoming)}};
  demand.deadline = standing->deadline;
  demand.last_step = standing->last_step;
  demand.trim_by = standing->trim_by;
  if (!LookFor(state_, demand, changes, now, &lookout_, &standing->look))
    return false;
  const Look::Found found = MakePlan(&standing->look, demand, now);
  return CarryOutStanding(standing, demand, found, incoming, turn);
}

// Whether the demand is over.
bool Reclaimer::CarryOutStanding(StandingDemand* standing,
                                 const quota::Demand& demand,
                                 const Look::Found& found, uint64_t incoming,
                                 Turn& turn) {
  const quota::Instant now = turn.now();
  const quota::Plan& plan = found.plan;
  Pool* pool = &state_.PoolAt(standing->pool);
  // That of requests, which plan for themselves.
  const quota::Instant replan_at =
      std::exchange(pool->plan.Edit({}).replan_at, quota::Instant::Max());
  standing->trim_by = std::min(standing->trim_by, plan.trim_by);
  const bool trims =
      plan.trim_by != quota::Instant::Max() && now < plan.trim_by;
  const bool taken = CarryOut(plan, now, pool, turn);
  const quota::Instant retry_at =
      std::exchange(pool->plan.Edit({}).replan_at, replan_at);
  if (taken) {
    standing->look.PlanOn();
    standing->look.Postpone(state_.look_budget->MayTake() ? now + kStandingLook
                                                          : now);
    return false;
  }
  standing->look.Wait(now, trims ? std::min(retry_at, plan.trim_by) : retry_at);
  if (trims || incoming > 0 || !plan.empty() || found.any_busy) return false;
  if (found.of_the_rest) return false;  // the others are looked for
  // Memory that is parked later is not what the operator asked for now.
  if (standing->cause != quota::Cause::kOperator) return false;
  standing->why.emplace(demand);
  return FindWhy(standing, turn);
}

// Whether the demand is over.
bool Reclaimer::FindWhy(StandingDemand* standing, Turn& turn) {
  if (!state_.look_budget->any_left()) return false;
  const uint64_t before = standing->why->looked_at();
  const bool all = standing->why->GoOn(state_, turn.now(), LookBudget::kSlice);
  lookout_.Spend(standing->why->looked_at() - before);
  if (!all) return false;
  FinishStanding(standing, standing->why->Finish(state_, turn.now()).sentences,
                 turn);
  return true;
}

void Reclaimer::FinishStanding(StandingDemand* standing,
                               std::vector<std::string> why, Turn& turn) {
  if (standing->done == nullptr) return;
  v1::ReclaimResponse response;
  const uint64_t short_bytes = StillWanted(state_, *standing);
  response.set_reclaimed_bytes(standing->wanted_bytes - short_bytes);
  response.set_lacking_bytes(standing->all ? 0 : short_bytes);
  for (std::string& text : why) response.add_findings(std::move(text));
  turn.Add(
      Reply{[done = std::move(standing->done), response] { done(response); }});
}

absl::Status Reclaimer::StartReclaim(const v1::ReclaimRequest& request,
                                     StandingDemand::Done done, Turn& turn) {
  if (!v1::ReclaimRequest::Step_IsValid(request.to())) {
    return proto::MakeError(v1::BAD_REQUEST, "the last step is TRIM or EVICT",
                            {.field = "to"});
  }
  const Tenant* tenant = state_.tenants->Find(request.tenant());
  const Pool* pool = state_.FindPool(request.device());
  if (tenant == nullptr) return NoSuchTenant(request.tenant());
  if (pool == nullptr) return NoSuchDevice(request.device());
  const quota::Instant now = turn.now();
  const uint64_t resident =
      state_.engine->TenantPool(tenant->id, pool->id)->resident_bytes;
  StandingDemand demand;
  demand.cause = quota::Cause::kOperator;
  demand.tenant = tenant->id;
  demand.pool = pool->id;
  demand.resident_before_bytes = resident;
  demand.all = request.bytes() == 0;
  demand.wanted_bytes = demand.all ? resident : request.bytes();
  demand.last_step = request.to() == v1::ReclaimRequest::TRIM
                         ? quota::Step::kTrim
                         : quota::Step::kEvict;
  const quota::Nanoseconds wait = SaneWait(request.wait());
  demand.deadline = now + (wait.count() > 0 ? wait : std::chrono::seconds(10));
  demand.done = std::move(done);
  v1::Event event = NewEvent(state_, "reclaim_asked", tenant->id);
  event.set_device(pool->uuid());
  event.set_bytes(demand.wanted_bytes);
  turn.Publish(std::move(event));
  state_.standing_at.Edit({}) = now;
  state_.standing.Edit({}).push_back(std::move(demand));
  return absl::OkStatus();
}

void Reclaimer::EndStandingOf(quota::TenantId tenant, Turn& turn) {
  state_.standing.Edit({}).remove_if([&](StandingDemand& demand) {
    if (demand.tenant != tenant) return false;
    FinishStanding(&demand, {}, turn);
    return true;
  });
}

void Reclaimer::EndStanding(const absl::Status& why, Turn& turn) {
  for (StandingDemand& demand : state_.standing.Edit({})) {
    if (demand.done == nullptr) continue;
    turn.Add(Reply{[done = std::move(demand.done), why] { done(why); }});
  }
  state_.standing.Edit({}).clear();
}

}  // namespace gmb::broker
