// Measures how much everybody's leases, limits and waiting requests cost those
// who ask for something else: the Machine alone, in thread CPU time.
//
// A third of the tenants has gates that are off, a third is at work, a third is
// parked within its guarantee: nothing of theirs can be taken.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/machine/machine_stage.h"
#include "bench/quantile.h"

namespace gmb::bench {
namespace {

using Gate = MachineStage::Gate;
constexpr uint64_t kGranule = MachineStage::kGranule;
constexpr uint64_t kStanding = 100;
constexpr uint64_t kPairGranules = 32;  // the guarantee of who is measured
constexpr uint64_t kPlenty = 1'000'000 * kGranule;
constexpr int kRounds = 5;
constexpr double kRoundSeconds = 2;

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void Require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "machine_bench: " << what << "\n";
  std::exit(1);
}

broker::MachineOptions Options() {
  broker::MachineOptions options;
  options.max_handles = 1'000'000;
  options.max_sessions = 100'000;
  return options;
}

// Everybody holds what there is, but for the guarantee of `pair`.
class Crowd {
 public:
  Crowd(uint64_t sessions, uint64_t leases)
      : each_(leases / sessions), world(Options(), leases * kGranule) {
    world.AddPool("gpu-1", (leases + kPairGranules) * kGranule);
    world.AddPool("gpu-2", 64 * kGranule);
    world.AddPool("gpu-3", 64 * kGranule);
    world.SetTenant("pair", kPairGranules * kGranule, kPlenty);
    pair_ = world.Connect("pair", Gate::kOff);
    world.SetTenant("waits", 0, kPlenty);
    world.SetTenant("small", 0, kPlenty);
    for (uint64_t i = 0; i < sessions; ++i) {
      const bool keeps = i % 3 == 2;
      world.SetTenant(NameOf(i), keeps ? each_ * kGranule : 0, kPlenty);
      sessions_.push_back(world.Connect(NameOf(i), keeps        ? Gate::kParked
                                                   : i % 3 == 1 ? Gate::kActive
                                                                : Gate::kOff));
      for (uint64_t k = 0; k < each_; ++k)
        Require(world.Acquire(sessions_.back(), "gpu-1", kGranule, 0) != 0,
                "a lease was refused");
    }
    Settle();
  }

  // 98 limits below what is held, a drain, a pending shrink, and one that waits
  // for more than can be had.
  void Load() {
    const uint64_t small = world.Connect("small", Gate::kActive);
    for (int i = 0; i < 16; ++i) {
      world.Acquire(small, "gpu-2", 2 * kGranule, 0);
      world.Acquire(small, "gpu-3", 2 * kGranule, 0);
    }
    world.Drain("gpu-2");
    world.Resize("gpu-3", 8 * kGranule);
    SetLimits(each_ * kGranule / 2);
    waits_ = world.Connect("waits", Gate::kActive);
    Require(
        world.Acquire(waits_, "gpu-1", 4 * kPairGranules * kGranule, 3600) == 0,
        "what cannot be served was served");
    Settle();
  }

  // Pairs for two seconds; whatever is due in between is done.
  void Pairs(std::vector<double>* us) {
    const Clock::time_point begin = Clock::now();
    while (Since(begin) < kRoundSeconds) {
      world.TickIfDue();
      const double before = world.spent_us();
      const uint64_t lease = world.Acquire(pair_, "gpu-1", 4 * kGranule, 0);
      Require(lease != 0, "a request within its guarantee was refused");
      world.Release(pair_, lease);
      us->push_back(world.spent_us() - before);
    }
  }

  // Of a core, for whatever is due while nothing happens.
  double Idle() {
    world.Forget();
    constexpr std::chrono::seconds kLong(30);
    const quota::Instant end = world.now() + kLong;
    const Clock::time_point begin = Clock::now();
    const quota::Instant from = world.now();
    while (world.now() < end && Since(begin) < 4) {
      if (world.Due() > world.now())
        world.Skip(std::min(world.Due(), end) - world.now());
      if (world.Due() <= world.now()) world.Tick();
    }
    const double seconds =
        static_cast<double>((world.now() - from).count()) * 1e-9;
    return world.spent_us() * 1e-6 / seconds;
  }

  // The sessions end one after the other, as after SIGKILL of all.
  double CloseAll() {
    world.Forget();
    for (const uint64_t session : sessions_) {
      world.TickIfDue();
      world.Close(session);
    }
    return world.spent_us() * 1e-3;
  }

  void SetLimits(uint64_t bytes) {
    for (uint64_t i = 1, n = 0; n < kStanding - 2; i += 3, ++n)
      world.SetTenant(NameOf(i), 0, bytes);
  }

 private:
  static std::string NameOf(uint64_t i) { return absl::StrCat("t", i); }
  void Settle() {
    world.Skip(std::chrono::seconds(20));
    const Clock::time_point begin = Clock::now();
    while (Since(begin) < 3 && world.Due() <= world.now()) world.Tick();
  }

  uint64_t each_;
  uint64_t pair_ = 0;
  uint64_t waits_ = 0;
  std::vector<uint64_t> sessions_;

 public:
  MachineStage world;
};

void PrintLongest(const char* when, const MachineStage& world) {
  std::printf("  longest event, %-7s %9.2f ms  (%s)\n", when,
              world.longest().us * 1e-3, world.longest().event.c_str());
}

void MeasurePairs(uint64_t sessions, uint64_t leases) {
  Crowd calm(sessions, leases);
  Crowd loaded(sessions, leases);
  loaded.Load();
  std::printf("%llu sessions, %llu leases: acquire and release\n",
              static_cast<unsigned long long>(sessions),
              static_cast<unsigned long long>(leases));
  calm.world.Forget();
  loaded.world.Forget();
  std::vector<double> p50s;
  std::vector<double> p99s;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> a;
    std::vector<double> b;
    calm.Pairs(&a);
    loaded.Pairs(&b);
    const double calm_p50 = Quantile(a, 0.5);
    const double p50 = Quantile(b, 0.5);
    p50s.push_back(p50 / calm_p50);
    p99s.push_back(Quantile(b, 0.99) * 1e-3 - 2 * Quantile(a, 0.99) * 1e-3);
    std::printf(
        "  calm p50 %7.1f us p99 %8.1f us (%6zu pairs), loaded p50 %9.1f us "
        "p99 %10.1f us (%6zu pairs)\n",
        calm_p50, Quantile(a, 0.99), a.size(), p50, Quantile(b, 0.99),
        b.size());
  }
  std::printf("  p50 loaded : calm, median          %9.2f\n",
              Quantile(p50s, 0.5));
  std::printf("  p99 loaded - 2 x p99 calm, median  %9.2f ms\n",
              Quantile(p99s, 0.5));
  PrintLongest("calm", calm.world);
  PrintLongest("loaded", loaded.world);
  std::printf("  idle, calm    %9.3f %% of a core\n", 100 * calm.Idle());
  std::printf("  idle, loaded  %9.3f %% of a core\n", 100 * loaded.Idle());
  PrintLongest("idle", loaded.world);
  loaded.world.Forget();
  loaded.SetLimits(kGranule);
  PrintLongest("limits", loaded.world);
}

void MeasureClose(uint64_t sessions, uint64_t leases, bool load) {
  Crowd crowd(sessions, leases);
  if (load) crowd.Load();
  const double ms = crowd.CloseAll();
  std::printf("%llu sessions of %llu leases end, %s: %.1f ms in all\n",
              static_cast<unsigned long long>(sessions),
              static_cast<unsigned long long>(leases), load ? "loaded" : "calm",
              ms);
  PrintLongest("close", crowd.world);
}

// A request within its guarantee waits for gates that do not park, and must not
// pause them; then one parks. How long until its lease is asked for?
void MeasureNotice(uint64_t sessions, uint64_t leases) {
  broker::MachineOptions options = Options();
  options.planner.pause = false;
  std::vector<double> ms;
  double idle = 0;
  std::mt19937_64 random(1);
  MachineStage world(options, 2 * leases * kGranule);
  world.AddPool("gpu-1", leases * kGranule);
  world.SetTenant("owner", leases * kGranule, kPlenty);
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < sessions; ++i) {
    const std::string name = absl::StrCat("t", i);
    world.SetTenant(name, 0, kPlenty);
    all.push_back(world.Connect(name, Gate::kActive));
    for (uint64_t k = 0; k < leases / sessions; ++k)
      Require(world.Acquire(all.back(), "gpu-1", kGranule, 0) != 0,
              "a lease was refused");
  }
  const uint64_t owner = world.Connect("owner", Gate::kActive);
  world.Skip(std::chrono::seconds(20));
  Require(world.Acquire(owner, "gpu-1", leases * kGranule, 3600) == 0,
          "what cannot be served was served");
  for (int round = 0; round < 30; ++round) {
    const quota::Instant until =
        world.now() + std::chrono::microseconds(700'000 + random() % 600'000);
    while (world.now() < until) {
      if (world.Due() > world.now())
        world.Skip(std::min(world.Due(), until) - world.now());
      if (world.Due() <= world.now()) world.Tick();
    }
    const uint64_t parks = all[random() % all.size()];
    if (world.was_evicted(parks)) continue;
    world.Park(parks);
    const quota::Instant at = world.now();
    const Clock::time_point begin = Clock::now();
    while (!world.was_evicted(parks) && Since(begin) < 20) {
      if (world.Due() > world.now()) world.Skip(world.Due() - world.now());
      world.Tick();
    }
    ms.push_back(static_cast<double>((world.now() - at).count()) * 1e-6);
  }
  world.Forget();
  const quota::Instant from = world.now();
  const broker::Look& look = world.state().pools->begin()->second->plan->look;
  const uint64_t looks = look.times();
  while (world.now() < from + std::chrono::seconds(5)) {
    if (world.Due() > world.now()) world.Skip(world.Due() - world.now());
    world.Tick();
  }
  idle = world.spent_us() * 1e-6 /
         (static_cast<double>((world.now() - from).count()) * 1e-9);
  std::printf(
      "%llu sessions, %llu leases: a gate that parks is noticed after %.1f ms "
      "(median of %zu), %.1f ms at most; %.2f %% of a core in the next 5 s, "
      "%llu looks, %llu turns\n",
      static_cast<unsigned long long>(sessions),
      static_cast<unsigned long long>(leases), Quantile(ms, 0.5), ms.size(),
      Quantile(ms, 1), 100 * idle,
      static_cast<unsigned long long>(look.times() - looks),
      static_cast<unsigned long long>(world.ticks()));
}

// Demands that stand while the leases they are for are at work, and would be
// taken as soon as that ends: 98 limits, a drain, and shrinks.
void MeasureStanding(uint64_t sessions, uint64_t leases) {
  MachineStage world(Options(), 2 * leases * kGranule);
  world.AddPool("gpu-1", leases * kGranule);
  world.AddPool("gpu-2", 64 * kGranule);
  const uint64_t each = leases / sessions;
  for (uint64_t i = 0; i < sessions; ++i) {
    const std::string name = absl::StrCat("t", i);
    world.SetTenant(name, 0, kPlenty);
    const uint64_t session = world.Connect(name, Gate::kActive);
    for (uint64_t k = 0; k < each; ++k)
      Require(world.Acquire(session, "gpu-1", kGranule, 0) != 0,
              "a lease was refused");
    if (i < 16) world.Acquire(session, "gpu-2", 2 * kGranule, 0);
  }
  world.Skip(std::chrono::seconds(20));
  world.Drain("gpu-2");
  world.Resize("gpu-1", leases * kGranule / 2);
  for (uint64_t i = 0; i < kStanding - 2; ++i)
    world.SetTenant(absl::StrCat("t", i), 0, each * kGranule / 2);
  const auto percent = [&](std::chrono::seconds time) {
    world.Forget();
    const quota::Instant from = world.now();
    while (world.now() < from + time) {
      if (world.Due() > world.now())
        world.Skip(std::min(world.Due(), from + time) - world.now());
      if (world.Due() <= world.now()) world.Tick();
    }
    return 100 * world.spent_us() * 1e-6 /
           (static_cast<double>((world.now() - from).count()) * 1e-9);
  };
  const double at_first = percent(std::chrono::seconds(5));
  const double later = percent(std::chrono::seconds(10));
  std::printf(
      "%llu sessions, %llu leases at work, demands for them: %.2f %% of a core "
      "in the first 5 s, %.2f %% in the next 10 s, %llu turns a second\n",
      static_cast<unsigned long long>(sessions),
      static_cast<unsigned long long>(leases), at_first, later,
      static_cast<unsigned long long>(world.ticks() / 10));
}

void MeasureWatching() {
  MeasureStanding(1000, 8000);
  MeasureStanding(8000, 8000);
  MeasureNotice(1000, 1000);
  MeasureNotice(1000, 8000);
  MeasureNotice(8000, 8000);
}

int Main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  uint64_t leases = 10'000;
  if (argc == 2 && std::string(argv[1]) == "watching") {
    MeasureWatching();
    return 0;
  }
  if (argc > 2 || (argc == 2 && !absl::SimpleAtoi(argv[1], &leases))) {
    std::cerr << "usage: machine_bench [LEASES | watching]\n";
    return 2;
  }
  MeasurePairs(1000, leases);
  if (leases != 10'000) return 0;
  MeasureClose(1000, 8000, false);
  MeasureClose(1000, 8000, true);
  MeasureWatching();
  return 0;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
