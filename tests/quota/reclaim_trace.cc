#include "tests/quota/reclaim_trace.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace gmb::quota {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kPoolBytes = 128 * kGiB;
constexpr double kPi = 3.14159265358979;

// The standard distributions differ between libraries; these do not.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  uint64_t Below(uint64_t bound) { return generator_() % bound; }
  double Unit() {
    return static_cast<double>(generator_() >> 11) / (uint64_t{1} << 53);
  }
  double Exponential(double mean) { return -mean * std::log(1 - Unit()); }

 private:
  std::mt19937_64 generator_;
};

Nanoseconds Seconds(double seconds) {
  return Nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

class Generator {
 public:
  explicit Generator(const ReclaimTraceOptions& options)
      : random_(options.seed * 4 + static_cast<uint64_t>(options.trace_class)),
        seconds_(std::chrono::duration<double>(options.length).count()) {
    trace_.pool_bytes = kPoolBytes;
  }

  ReclaimTrace Make(TraceClass trace_class) {
    MakeTenants(trace_class == TraceClass::kAdversarial ? 12 : 10);
    for (uint64_t tenant = 0; tenant < trace_.tenants.size(); ++tenant) {
      switch (trace_class) {
        case TraceClass::kBursty:
          MakeBursts(tenant);
          break;
        case TraceClass::kPeriodic:
          MakePeriods(tenant);
          break;
        case TraceClass::kDiurnal:
          MakeDays(tenant);
          break;
        case TraceClass::kAdversarial:
          MakeTrouble(tenant);
          break;
      }
    }
    std::stable_sort(
        trace_.uses.begin(), trace_.uses.end(),
        [](const TraceUse& a, const TraceUse& b) { return a.at < b.at; });
    return trace_;
  }

 private:
  // Models of 8 to 40 GiB; together about twice the pool.
  void MakeTenants(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t model = (8 + random_.Below(33)) * kGiB;
      // Every third one has its model guaranteed, as far as that goes.
      const bool wants = i % 3 == 0 && guaranteed_ + model <= kPoolBytes / 2;
      if (wants) guaranteed_ += model;
      trace_.tenants.push_back({.guarantee_bytes = wants ? model : 0,
                                .limit_bytes = kPoolBytes,
                                .weight_bytes = model});
    }
  }

  void Use(uint64_t tenant, double at, double work, double wait,
           uint64_t burst_bytes) {
    if (at >= seconds_) return;
    trace_.uses.push_back({.at = Instant{} + Seconds(at),
                           .tenant = tenant,
                           .work = Seconds(work),
                           .wait = Seconds(wait),
                           .burst_bytes = burst_bytes});
  }

  uint64_t Burst() {
    return random_.Below(4) == 0 ? (1 + random_.Below(8)) * kGiB : 0;
  }

  // Requests in quick succession, then long silences.
  void MakeBursts(uint64_t tenant) {
    for (double at = random_.Exponential(30); at < seconds_;
         at += 5 + random_.Exponential(45)) {
      const uint64_t requests = 1 + random_.Below(30);
      for (uint64_t i = 0; i < requests; ++i) {
        const double work = 0.05 + random_.Exponential(0.3);
        Use(tenant, at, work, 20, Burst());
        at += work + random_.Exponential(0.2);
      }
    }
  }

  // A batch every so often, always the same.
  void MakePeriods(uint64_t tenant) {
    const double period = 20.0 + static_cast<double>(random_.Below(6)) * 10;
    const double work = period * (0.1 + 0.15 * random_.Unit());
    for (double at = random_.Unit() * period; at < seconds_; at += period) {
      Use(tenant, at, work, 20, tenant % 2 == 0 ? 4 * kGiB : 0);
    }
  }

  // Busier and quieter over a "day" of ten minutes, at different hours.
  void MakeDays(uint64_t tenant) {
    const double phase = random_.Unit() * 2 * kPi;
    double at = 0;
    while (at < seconds_) {
      const double busy = 0.5 + 0.5 * std::sin(2 * kPi * at / 600 + phase);
      at += random_.Exponential(1 + 60 * (1 - busy) * (1 - busy));
      const double work = 0.1 + random_.Exponential(0.8);
      Use(tenant, at, work, 20, Burst());
      at += work;
    }
  }

  // Some wake up all together, some again and again just after they parked
  // (when a copy is under way), some hardly ever park.
  void MakeTrouble(uint64_t tenant) {
    switch (tenant % 3) {
      case 0:
        for (double at = 10; at < seconds_; at += 30) {
          Use(tenant, at + 0.001 * static_cast<double>(tenant), 2, 20, 0);
        }
        break;
      case 1:
        for (double at = random_.Unit(); at < seconds_;
             at += 2.05 + 0.2 * random_.Unit()) {
          Use(tenant, at, 0.02, 20, 0);
        }
        break;
      default:
        for (double at = random_.Unit() * 60; at < seconds_;
             at += random_.Exponential(60)) {
          for (int i = 0; i < 40; ++i) {
            const double work = 0.4 + random_.Unit() * 0.2;
            Use(tenant, at, work, 20, Burst());
            at += work + 0.004;  // parks after 5 ms
          }
        }
    }
  }

  Random random_;
  const double seconds_;
  uint64_t guaranteed_ = 0;
  ReclaimTrace trace_;
};

}  // namespace

const char* TraceName(TraceClass trace_class) {
  switch (trace_class) {
    case TraceClass::kBursty:
      return "bursty";
    case TraceClass::kPeriodic:
      return "periodic";
    case TraceClass::kDiurnal:
      return "diurnal";
    case TraceClass::kAdversarial:
      return "adversarial";
  }
  return "unknown";
}

ReclaimTrace MakeReclaimTrace(const ReclaimTraceOptions& options) {
  return Generator(options).Make(options.trace_class);
}

}  // namespace gmb::quota
