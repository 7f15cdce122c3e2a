// What operators want back, by asking for it or by making room smaller.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/machine.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "broker/machine/verdict_sentences.h"
#include "broker/machine/wire_form.h"
#include "proto/amount_text.h"
#include "proto/error_status.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kLook = std::chrono::milliseconds(20);

}  // namespace

// In bytes, whatever is on its way back already.
uint64_t Machine::StillWanted(const StandingDemand& demand) const {
  const quota::PoolView pool = *state_.engine.Pool(demand.pool);
  const auto tenant = state_.engine.TenantPool(demand.tenant, demand.pool);
  switch (demand.cause) {
    case quota::Cause::kOperator: {
      if (!tenant.has_value()) return 0;
      const uint64_t back =
          demand.resident_before_bytes -
          std::min(demand.resident_before_bytes, tenant->resident_bytes);
      return demand.wanted_bytes - std::min(demand.wanted_bytes, back);
    }
    case quota::Cause::kTenantDelete:
      return tenant.has_value() && state_.departures.contains(demand.tenant)
                 ? tenant->resident_bytes
                 : 0;
    case quota::Cause::kOverLimit:
      return tenant.has_value() ? tenant->over_limit_bytes : 0;
    case quota::Cause::kPoolShrink:
      return pool.capacity_bytes - pool.target_bytes;
    case quota::Cause::kPoolDrain:
      return pool.draining ? pool.charged_bytes : 0;
    default:
      return 0;
  }
}

void Machine::AddStanding(StandingDemand demand, Turn& turn) {
  state_.standing.remove_if([&](const StandingDemand& other) {
    return demand.cause != quota::Cause::kOperator &&
           other.cause == demand.cause && other.tenant == demand.tenant &&
           other.pool == demand.pool;
  });
  demand.next_look = turn.now();
  if (StillWanted(demand) > 0) state_.standing.push_back(std::move(demand));
}

void Machine::ServeStanding(quota::Instant now, Turn& turn) {
  for (auto it = state_.standing.begin(); it != state_.standing.end();) {
    if (now < it->next_look || !ServeOne(&*it, now, turn)) {
      ++it;
    } else {
      it = state_.standing.erase(it);
    }
  }
}

// Whether it is over.
bool Machine::ServeOne(StandingDemand* standing, quota::Instant now,
                       Turn& turn) {
  standing->next_look = now + kLook;
  const bool of_tenant = standing->tenant.value != 0;
  const uint64_t wanted = StillWanted(*standing);
  const uint64_t incoming = IncomingBytes(
      state_, standing->pool,
      of_tenant ? std::optional(standing->tenant) : std::nullopt, true, now);
  if (wanted == 0 || now >= standing->deadline) {
    FinishStanding(standing, {}, turn);
    return true;
  }
  if (wanted <= incoming) return false;
  quota::Demand demand;
  demand.cause = standing->cause;
  demand.tenant = standing->tenant;
  demand.needs = {{standing->pool, wanted - incoming}};
  demand.deadline = standing->deadline;
  demand.last_step = standing->last_step;
  demand.trim_by = standing->trim_by;
  std::vector<quota::LeaseVerdict> why;
  const quota::Plan plan = PlanFor(state_, demand, now, &why);
  Pool* pool = &state_.PoolAt(standing->pool);
  const quota::Instant replan_at = pool->replan_at;
  standing->trim_by = std::min(standing->trim_by, plan.trim_by);
  const bool trims =
      plan.trim_by != quota::Instant::Max() && now < plan.trim_by;
  const bool taken = CarryOut(plan, now, pool, turn);
  standing->next_look = std::min(standing->next_look, pool->replan_at);
  pool->replan_at = replan_at;  // of requests, which plan for themselves
  const bool in_work =
      std::any_of(why.begin(), why.end(), [&](const auto& verdict) {
        return verdict.verdict == quota::Verdict::kBusy;
      });
  if (taken || trims || incoming > 0 || !plan.empty() || in_work) return false;
  // Whatever is parked later is not what the operator asked for now.
  if (standing->cause != quota::Cause::kOperator) return false;
  FinishStanding(standing, why, turn);
  return true;
}

void Machine::FinishStanding(StandingDemand* standing,
                             const std::vector<quota::LeaseVerdict>& why,
                             Turn& turn) {
  if (standing->done == nullptr) return;
  v1::ReclaimResponse response;
  const uint64_t short_bytes = StillWanted(*standing);
  response.set_reclaimed_bytes(standing->wanted_bytes - short_bytes);
  response.set_lacking_bytes(standing->all ? 0 : short_bytes);
  for (std::string& text : VerdictSentences(state_, why, standing->tenant))
    response.add_findings(std::move(text));
  turn.Add(
      Reply{[done = std::move(standing->done), response] { done(response); }});
}

absl::Status Machine::StartReclaim(const v1::ReclaimRequest& request,
                                   StandingDemand::Done done, Turn& turn) {
  if (!v1::ReclaimRequest::Step_IsValid(request.to())) {
    return proto::MakeError(v1::BAD_REQUEST, "the last step is TRIM or EVICT",
                            {.field = "to"});
  }
  if (state_.stopping) return Stopping();
  const Tenant* tenant = state_.tenants.Find(request.tenant());
  const Pool* pool = state_.FindPool(request.device());
  if (tenant == nullptr) return NoSuchTenant(request.tenant());
  if (pool == nullptr) return NoSuchDevice(request.device());
  const quota::Instant now = turn.now();
  const uint64_t resident =
      state_.engine.TenantPool(tenant->id, pool->id)->resident_bytes;
  StandingDemand demand;
  demand.cause = quota::Cause::kOperator;
  demand.tenant = tenant->id;
  demand.pool = pool->id;
  demand.next_look = now;
  demand.resident_before_bytes = resident;
  demand.all = request.bytes() == 0;
  demand.wanted_bytes = demand.all ? resident : request.bytes();
  demand.last_step = request.to() == v1::ReclaimRequest::TRIM
                         ? quota::Step::kTrim
                         : quota::Step::kEvict;
  const quota::Nanoseconds wait = SaneWait(request.wait());
  demand.deadline = now + (wait.count() > 0 ? wait : std::chrono::seconds(10));
  demand.done = std::move(done);
  v1::Event event = NewEvent("reclaim_asked", tenant->id);
  event.set_device(pool->uuid());
  event.set_bytes(demand.wanted_bytes);
  turn.Publish(std::move(event));
  state_.standing.push_back(std::move(demand));
  return absl::OkStatus();
}

void Machine::RefuseWaiting(Turn& turn) {
  state_.stopping = true;
  for (StandingDemand& demand : state_.standing) {
    if (demand.done == nullptr) continue;
    turn.Add(Reply{[done = std::move(demand.done)] { done(Stopping()); }});
  }
  state_.standing.clear();
  for (auto& [tenant, departure] : state_.departures) {
    if (departure.done == nullptr) continue;
    turn.Add(Reply{[done = std::move(departure.done)] { done(Stopping()); }});
  }
  state_.departures.clear();
}

}  // namespace gmb::broker
