#include "tests/quota/simulator.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gmb::quota {
namespace {

class Simulation {
 public:
  Simulation(const Trace& trace, Engine& engine)
      : trace_(trace), engine_(engine) {}

  SimulatorResult Run() {
    SetUp();
    const size_t every = std::max<size_t>(
        1, trace_.requests.size() / std::max<size_t>(1, trace_.changes.size()));
    for (size_t i = 0; i < trace_.requests.size(); ++i) {
      const TraceRequest& request = trace_.requests[i];
      AdvanceTo(request.at);
      if (i % every == 0 && i / every < trace_.changes.size()) {
        const TraceQuota& change = trace_.changes[i / every];
        Do(QuotaSet{change.pool, change.tenant, change.quota});
      }
      Do(Acquire{.request = RequestId{i},
                 .session = SessionId{request.tenant.value},
                 .tenant = request.tenant,
                 .pool = request.pool,
                 .bytes = request.bytes,
                 .handles = static_cast<uint32_t>(1 + (request.bytes >> 30)),
                 .deadline = now_ + request.wait});
    }
    AdvanceTo(Instant::Max());
    if (now_.ns > 0 && capacity_bytes_ > 0) {
      result_.mean_utilisation =
          leased_byte_seconds_ / (static_cast<double>(capacity_bytes_) *
                                  static_cast<double>(now_.ns) * 1e-9);
    }
    result_.mean_decision_ns = static_cast<double>(spent_.count()) /
                               static_cast<double>(result_.events);
    return result_;
  }

 private:
  void SetUp() {
    for (const TraceQuota& quota : trace_.quotas) {
      if (!engine_.Pool(quota.pool)) {
        Do(PoolSet{quota.pool, trace_.pool_bytes, trace_.granularity_bytes});
        capacity_bytes_ += engine_.Pool(quota.pool)->capacity_bytes;
      }
      if (!engine_.Tenant(quota.tenant)) Do(TenantSet{.tenant = quota.tenant});
      Do(QuotaSet{quota.pool, quota.tenant, quota.quota});
    }
  }

  // Releases and deadlines that are due before `until`, in the order of time.
  void AdvanceTo(Instant until) {
    while (true) {
      const auto deadline = engine_.NextDeadline();
      const Instant release =
          releases_.empty() ? Instant::Max() : releases_.begin()->first;
      const Instant next = std::min(release, deadline.value_or(Instant::Max()));
      if (next > until || next == Instant::Max()) break;
      Pass(next);
      if (release <= next) {
        const LeaseId lease = releases_.begin()->second;
        releases_.erase(releases_.begin());
        leased_bytes_ -= engine_.Lease(lease)->bytes;
        Do(Released{lease});
      } else {
        Do(Tick{});
      }
    }
    if (until != Instant::Max()) Pass(until);
  }

  void Pass(Instant until) {
    leased_byte_seconds_ += static_cast<double>(leased_bytes_) *
                            static_cast<double>((until - now_).count()) * 1e-9;
    now_ = until;
  }

  void Do(const Event& event) {
    ++result_.events;
    const auto start = std::chrono::steady_clock::now();
    const Effects effects = engine_.Handle(event, now_);
    spent_ += std::chrono::steady_clock::now() - start;
    for (const Effect& effect : effects) {
      std::visit([&](const auto& e) { Count(e); }, effect);
    }
    result_.most_waiting = std::max(result_.most_waiting, engine_.waiting());
  }

  void Count(const Granted& granted) {
    const TraceRequest& request = trace_.requests[granted.request.value];
    const Nanoseconds waited = now_ - request.at;
    if (waited.count() == 0) {
      ++result_.granted_at_once;
    } else {
      ++result_.granted_after_waiting;
      result_.total_wait += waited;
    }
    leased_bytes_ += granted.bytes;
    releases_.emplace(now_ + request.hold, granted.lease);
  }
  void Count(const Denied& denied) { ++result_.denied[denied.reason]; }
  void Count(const QuotaPending&) { ++result_.quotas_pending; }
  void Count(const QuotaRefused&) { ++result_.quotas_refused; }
  template <typename Other>
  void Count(const Other&) {}

  const Trace& trace_;
  Engine& engine_;
  Instant now_;
  std::multimap<Instant, LeaseId> releases_;
  uint64_t capacity_bytes_ = 0;
  uint64_t leased_bytes_ = 0;
  double leased_byte_seconds_ = 0;
  std::chrono::nanoseconds spent_{0};
  SimulatorResult result_;
};

}  // namespace

std::string SimulatorResult::Summary() const {
  std::string text = absl::StrFormat(
      "%d events: %d granted at once, %d after waiting %.2f s on average, at "
      "most %d waiting; quota changes: %d pending, %d refused\n"
      "mean utilisation %.1f %%, mean decision %.0f ns\ndenied:",
      events, granted_at_once, granted_after_waiting,
      granted_after_waiting == 0
          ? 0.0
          : std::chrono::duration<double>(total_wait).count() /
                static_cast<double>(granted_after_waiting),
      most_waiting, quotas_pending, quotas_refused, 100 * mean_utilisation,
      mean_decision_ns);
  for (const auto& [reason, count] : denied) {
    absl::StrAppend(&text, " ", ReasonName(reason), " ", count);
  }
  return text;
}

SimulatorResult Simulate(const Trace& trace, Engine& engine) {
  return Simulation(trace, engine).Run();
}

}  // namespace gmb::quota
