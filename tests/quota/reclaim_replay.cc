#include "tests/quota/reclaim_replay.h"

#include <algorithm>
#include <utility>

namespace gmb::quota {
namespace {

constexpr PoolId kPool{1};
constexpr uint64_t kGranularityBytes = uint64_t{2} << 20;

class Run {
 public:
  Run(const ReclaimTrace& trace, const WorldOptions& options)
      : trace_(trace), world_(options), models_(trace.tenants.size()) {}

  ReplayResult Go() {
    world_.AddPool(kPool, trace_.pool_bytes, kGranularityBytes);
    for (size_t i = 0; i < trace_.tenants.size(); ++i) {
      const TraceTenant& tenant = trace_.tenants[i];
      TenantSetup setup{.quota = {Amount::Bytes(tenant.guarantee_bytes),
                                  Amount::Bytes(tenant.limit_bytes), 1}};
      setup.pause_grace = std::chrono::seconds(5);
      world_.AddTenant(TenantId{i + 1}, setup);
      sessions_.push_back(world_.AddSession(TenantId{i + 1}));
    }
    for (const TraceUse& use : trace_.uses) {
      world_.At(use.at, [this, &use] { Begin(use); });
    }
    const Instant end = trace_.uses.empty() ? Instant{} : trace_.uses.back().at;
    world_.RunUntil(end + std::chrono::seconds(60));
    result_.problem = world_.Check();
    Sum();
    return result_;
  }

 private:
  struct Model {
    bool loaded = false;
    std::vector<const TraceUse*> uses;  // that wait for it
  };

  // The model is loaded when it is first used and stays leased. Uses that come
  // while it is being loaded wait for that.
  void Begin(const TraceUse& use) {
    ++result_.uses;
    Model& model = models_[use.tenant];
    if (model.loaded) {
      Work(use);
      return;
    }
    model.uses.push_back(&use);
    if (model.uses.size() > 1) return;
    world_.Acquire(
        sessions_[use.tenant], kPool, trace_.tenants[use.tenant].weight_bytes,
        false, Contents::kPreserve, use.wait, [this, &model](bool served) {
          model.loaded = served;
          for (const TraceUse* waiting : std::exchange(model.uses, {})) {
            if (served) {
              Work(*waiting);
            } else {
              ++result_.denied;
            }
          }
        });
  }

  void Work(const TraceUse& use) {
    const Nanoseconds wait = use.at + use.wait - world_.now();
    if (wait.count() <= 0) {
      ++result_.denied;
      return;
    }
    world_.Work(sessions_[use.tenant], use.work, wait, [&](bool served) {
      if (!served) {
        ++result_.denied;
      } else if (use.burst_bytes > 0) {
        Burst(use);
      } else {
        Served(use);
      }
    });
  }

  // Asked for within the scope, and given back when the work is done.
  void Burst(const TraceUse& use) {
    const Nanoseconds wait = std::min<Nanoseconds>(
        std::chrono::seconds(5), use.at + use.wait - world_.now());
    world_.Acquire(sessions_[use.tenant], kPool, use.burst_bytes, false,
                   Contents::kDiscard, wait, [this, &use](bool served) {
                     if (!served) {
                       ++result_.denied;
                       return;
                     }
                     Served(use);
                     world_.At(world_.now() + use.work,
                               [this, lease = world_.granted()] {
                                 world_.Release(lease);
                               });
                   });
  }

  void Served(const TraceUse& use) {
    const double ms =
        static_cast<double>((world_.now() - use.at).count()) * 1e-6;
    waits_.push_back(ms);
    if (trace_.tenants[use.tenant].guarantee_bytes > 0) {
      guaranteed_waits_.push_back(ms);
    } else {
      borrowing_waits_.push_back(ms);
    }
  }

  static double Quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto at =
        static_cast<size_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(at),
                     values.end());
    return values[at];
  }

  void Sum() {
    const ReclaimWorld::Figures& figures = world_.figures();
    result_.served = waits_.size();
    result_.wait_p50_ms = Quantile(waits_, 0.5);
    result_.wait_p99_ms = Quantile(waits_, 0.99);
    result_.guaranteed_p99_ms = Quantile(guaranteed_waits_, 0.99);
    result_.borrowing_p99_ms = Quantile(borrowing_waits_, 0.99);
    std::vector<double> wakes;
    for (const Nanoseconds wake : figures.wakes)
      wakes.push_back(static_cast<double>(wake.count()) * 1e-6);
    result_.wakes = wakes.size();
    result_.wake_p50_ms = Quantile(wakes, 0.5);
    result_.wake_p99_ms = Quantile(wakes, 0.99);
    result_.taken_ahead = figures.taken_ahead;
    result_.regretted = figures.regretted;
    result_.brought_back = figures.brought_back;
    result_.copied_out_bytes = figures.copied_out_bytes;
    result_.copied_in_bytes = figures.copied_in_bytes;
    result_.backed_ahead_bytes = figures.backed_ahead_bytes;
    result_.evictions = figures.evictions;
    result_.pauses = figures.pauses;
    const double all = static_cast<double>(trace_.pool_bytes) *
                       static_cast<double>(world_.now().ns) * 1e-9;
    result_.resident = figures.resident_byte_seconds / all;
    result_.active = figures.active_byte_seconds / all;
  }

  const ReclaimTrace& trace_;
  ReclaimWorld world_;
  std::vector<SessionId> sessions_;
  std::vector<Model> models_;
  std::vector<double> waits_, guaranteed_waits_, borrowing_waits_;
  ReplayResult result_;
};

}  // namespace

ReplayResult Replay(const ReclaimTrace& trace, const WorldOptions& options) {
  return Run(trace, options).Go();
}

}  // namespace gmb::quota
