// What operators want back, by asking for it or by making room smaller.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/amount_text.h"
#include "proto/error_status.h"
#include "quota/planner.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kLook = std::chrono::milliseconds(20);
constexpr size_t kMostFindings = 16;

}  // namespace

// In bytes, whatever is on its way back already.
uint64_t Core::StillWanted(const StandingDemand& demand) const {
  const quota::PoolView pool = *engine_.Pool(demand.pool);
  const auto tenant = engine_.TenantPool(demand.tenant, demand.pool);
  switch (demand.cause) {
    case quota::Cause::kOperator: {
      if (!tenant.has_value()) return 0;
      const uint64_t back =
          demand.resident_before_bytes -
          std::min(demand.resident_before_bytes, tenant->resident_bytes);
      return demand.wanted_bytes - std::min(demand.wanted_bytes, back);
    }
    case quota::Cause::kTenantDelete:
      return tenant.has_value() && departures_.contains(demand.tenant)
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

void Core::AddStanding(StandingDemand demand) {
  standing_.remove_if([&](const StandingDemand& other) {
    return demand.cause != quota::Cause::kOperator &&
           other.cause == demand.cause && other.tenant == demand.tenant &&
           other.pool == demand.pool;
  });
  demand.next_look = deps_.clock->Now();
  if (StillWanted(demand) > 0) standing_.push_back(std::move(demand));
}

void Core::ServeStanding(quota::Instant now, Afterwards* after) {
  for (auto it = standing_.begin(); it != standing_.end();) {
    if (now < it->next_look || !ServeOne(&*it, now, after)) {
      ++it;
    } else {
      it = standing_.erase(it);
    }
  }
}

// Whether it is over.
bool Core::ServeOne(StandingDemand* standing, quota::Instant now,
                    Afterwards* after) {
  standing->next_look = now + kLook;
  const bool of_tenant = standing->tenant.value != 0;
  const uint64_t wanted = StillWanted(*standing);
  const uint64_t incoming = IncomingBytes(
      standing->pool,
      of_tenant ? std::optional(standing->tenant) : std::nullopt, true);
  if (wanted == 0 || now >= standing->deadline) {
    FinishStanding(standing, {}, after);
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
  const quota::Plan plan = PlanFor(demand, now, &why);
  Pool* pool = pools_.at(standing->pool).get();
  const quota::Instant replan_at = pool->replan_at;
  standing->trim_by = std::min(standing->trim_by, plan.trim_by);
  const bool trims =
      plan.trim_by != quota::Instant::Max() && now < plan.trim_by;
  const bool taken = CarryOut(plan, now, pool, after);
  standing->next_look = std::min(standing->next_look, pool->replan_at);
  pool->replan_at = replan_at;  // of requests, which plan for themselves
  const bool in_work =
      std::any_of(why.begin(), why.end(), [&](const auto& verdict) {
        return verdict.verdict == quota::Verdict::kBusy;
      });
  if (taken || trims || incoming > 0 || !plan.empty() || in_work) return false;
  // Whatever is parked later is not what the operator asked for now.
  if (standing->cause != quota::Cause::kOperator) return false;
  FinishStanding(standing, why, after);
  return true;
}

void Core::FinishStanding(StandingDemand* standing,
                          const std::vector<quota::LeaseVerdict>& why,
                          Afterwards* after) {
  if (standing->done == nullptr) return;
  v1::ReclaimResponse response;
  const uint64_t short_bytes = StillWanted(*standing);
  response.set_reclaimed_bytes(standing->wanted_bytes - short_bytes);
  response.set_lacking_bytes(standing->all ? 0 : short_bytes);
  for (std::string& text : VerdictSentences(why, standing->tenant))
    response.add_findings(std::move(text));
  after->answers.emplace_back(
      [done = std::move(standing->done), response] { done(response); });
}

// Why leases stay, those that hold most first.
std::vector<std::string> Core::VerdictSentences(
    const std::vector<quota::LeaseVerdict>& why,
    std::optional<quota::TenantId> tenant) const {
  std::map<quota::Verdict, std::pair<uint64_t, uint64_t>> stayed;
  for (const quota::LeaseVerdict& verdict : why) {
    const auto lease = leases_.find(verdict.lease);
    const bool meant =
        lease != leases_.end() &&
        (!tenant.has_value() || lease->second->tenant == *tenant);
    if (!meant || verdict.verdict == quota::Verdict::kTaken ||
        verdict.verdict == quota::Verdict::kEvicted) {
      continue;
    }
    auto& [leases, bytes] = stayed[verdict.verdict];
    ++leases;
    bytes += lease->second->bytes;
  }
  std::vector<std::pair<uint64_t, std::string>> sentences;
  sentences.reserve(stayed.size());
  for (const auto& [verdict, sums] : stayed) {
    sentences.emplace_back(
        sums.second,
        absl::StrCat(sums.first, sums.first == 1 ? " lease" : " leases", " of ",
                     proto::FormatBytes(sums.second), ": ",
                     quota::VerdictText(verdict)));
  }
  std::sort(sentences.rbegin(), sentences.rend());
  if (sentences.size() > kMostFindings) sentences.resize(kMostFindings);
  std::vector<std::string> texts;
  texts.reserve(sentences.size());
  for (auto& [bytes, text] : sentences) texts.push_back(std::move(text));
  return texts;
}

absl::Status Core::AddReclaim(const v1::ReclaimRequest& request,
                              StandingDemand::Done done, Afterwards* after) {
  if (!v1::ReclaimRequest::Step_IsValid(request.to())) {
    return proto::MakeError(v1::BAD_REQUEST, "the last step is TRIM or EVICT",
                            {.field = "to"});
  }
  if (stopping_) return Stopping();
  const Tenant* tenant = tenants_.Find(request.tenant());
  const Pool* pool = FindPool(request.device());
  if (tenant == nullptr) return NoSuchTenant(request.tenant());
  if (pool == nullptr) return NoSuchDevice(request.device());
  const quota::Instant now = deps_.clock->Now();
  const uint64_t resident =
      engine_.TenantPool(tenant->id, pool->id)->resident_bytes;
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
  deps_.events->Publish(std::move(event));
  standing_.push_back(std::move(demand));
  Maintain(after);
  return absl::OkStatus();
}

absl::Status Core::StartReclaim(const v1::ReclaimRequest& request,
                                StandingDemand::Done done) {
  Afterwards after;
  absl::Status added;
  {
    ipc::MutexLock lock(&mu_);
    added = AddReclaim(request, std::move(done), &after);
  }
  after.Run(this);
  return added;
}

void Core::RefuseWaiting() {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    stopping_ = true;
    for (StandingDemand& demand : standing_) {
      if (demand.done == nullptr) continue;
      after.answers.emplace_back(
          [done = std::move(demand.done)] { done(Stopping()); });
    }
    standing_.clear();
    for (auto& [tenant, departure] : departures_) {
      if (departure.done == nullptr) continue;
      after.answers.emplace_back(
          [done = std::move(departure.done)] { done(Stopping()); });
    }
    departures_.clear();
  }
  after.Run(this);
}

}  // namespace gmb::broker
