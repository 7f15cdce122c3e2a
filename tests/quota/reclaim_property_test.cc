// Random worlds, and worlds made to starve or to trap somebody. GMB_QUOTA_SEED
// sets the first seed, GMB_QUOTA_SEEDS how many.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/quota/from_environment.h"
#include "tests/quota/plan_check.h"
#include "tests/quota/reclaim_world.h"
#include "tests/sanitized.h"

namespace gmb::quota {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr PoolId kPool{1}, kOther{2};

// Bytes are few and slow: 100 of them take 100 ms.
WorldOptions SlowWorld() {
  WorldOptions options;
  options.costs.copy_bytes_per_second = 1000;
  options.planner.copy_bytes_per_second = 1000;
  options.planner.unmap_grace = seconds(1);
  options.planner.gap_round_trips = 40;  // so that some wake often
  options.backing = {.bytes_per_second = 100,
                     .burst_bytes = 50,
                     .idle_for = milliseconds(200)};
  return options;
}

TenantSetup QuotaOf(uint64_t guarantee, uint64_t limit, double weight = 1) {
  return {.quota = {Amount::Bytes(guarantee), Amount::Bytes(limit), weight}};
}

class RandomWorld {
 public:
  RandomWorld(uint64_t seed, const WorldOptions& options)
      : random_(seed), options_(options), world_(options) {
    world_.set_watch([this](const Snapshot& snapshot, const Demand& demand,
                            Instant now, const Plan& plan) {
      if (problem_.empty()) {
        problem_ = CheckPlan(snapshot, demand, now, options_.planner, plan);
      }
      return problem_.empty();
    });
    world_.AddPool(kPool, 100, 1);
    world_.AddPool(kOther, 80, 1);
    for (uint64_t tenant = 1; tenant <= 5; ++tenant) {
      TenantSetup setup = QuotaOf(tenant == 5 ? 0 : Below(20), 40 + Below(60),
                                  static_cast<double>(1 + Below(3)));
      setup.may_terminate = Below(2) == 0;
      setup.min_residency = milliseconds(Below(3) * 300);
      setup.pause_grace = milliseconds(100 + Below(2000));
      if (setup.quota.limit.bytes() > 80) {
        setup.quota.limit = Amount::Bytes(80);
      }
      world_.AddTenant(TenantId{tenant}, setup);
    }
  }

  std::string Run(int steps) {
    for (int i = 0; i < steps && problem_.empty(); ++i) {
      world_.RunUntil(world_.now() + milliseconds(Below(80)));
      Step();
      Check();
    }
    for (int i = 0; i < 30 && problem_.empty(); ++i) {
      world_.RunUntil(world_.now() + seconds(1));
      Check();
    }
    // Everybody goes; nothing may be left.
    for (const SessionId session : sessions_) world_.Close(session);
    world_.SetMissing(kPool, 0);
    world_.RunUntil(world_.now() + seconds(100));
    Check();
    for (const PoolId pool : {kPool, kOther}) {
      if (problem_.empty() && world_.engine().Pool(pool)->leased_bytes != 0) {
        problem_ = "bytes are left";
      }
    }
    if (problem_.empty() && world_.engine().waiting() != 0) {
      problem_ = "somebody waits for ever";
    }
    return problem_;
  }

  const ReclaimWorld::Figures& figures() const { return world_.figures(); }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Check() {
    if (problem_.empty()) problem_ = world_.Check();
  }

  SessionId SomeSession() {
    return sessions_.empty() ? SessionId{} : sessions_[Below(sessions_.size())];
  }

  void Step() {
    switch (Below(16)) {
      case 0:
      case 1: {
        const uint64_t kind = Below(12);
        sessions_.push_back(world_.AddSession(TenantId{1 + Below(5)},
                                              kind == 0 ? Manners::kNeverUnmaps
                                              : kind == 1 ? Manners::kNeverParks
                                                          : Manners::kAnswers));
        return;
      }
      case 2:
      case 3:
      case 4:
      case 5: {
        const uint64_t kind = Below(10);
        world_.Acquire(SomeSession(), Below(3) == 0 ? kOther : kPool,
                       1 + Below(kind == 0 ? 60 : 15), kind == 1,
                       kind < 4 ? Contents::kDiscard : Contents::kPreserve,
                       milliseconds(Below(3) * 1500), {});
        return;
      }
      case 6: {
        const auto leases = world_.LeasesOf(SomeSession());
        if (!leases.empty()) world_.Release(leases[Below(leases.size())]);
        return;
      }
      case 7:
        if (Below(4) == 0) world_.Close(SomeSession());
        return;
      case 8:
        if (Below(8) == 0) world_.SetMissing(kPool, Below(3) * 10);
        return;
      default:
        world_.Work(SomeSession(), milliseconds(Below(400)),
                    milliseconds(Below(4000)), {});
    }
  }

  std::mt19937_64 random_;
  WorldOptions options_;
  ReclaimWorld world_;
  std::vector<SessionId> sessions_;
  std::string problem_;
};

// Returns what the runs of all seeds found; stops at the first problem.
std::string RunSeeds(const WorldOptions& options, uint64_t first,
                     uint64_t count, ReclaimWorld::Figures* total = nullptr) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomWorld world(seed, options);
    const std::string problem = world.Run(400);
    if (!problem.empty()) {
      return absl::StrCat(problem, " (GMB_QUOTA_SEED=", seed,
                          " GMB_QUOTA_SEEDS=1)");
    }
    if (total == nullptr) continue;
    total->evictions += world.figures().evictions;
    total->pauses += world.figures().pauses;
    total->pauses_withdrawn += world.figures().pauses_withdrawn;
    total->kills += world.figures().kills;
    total->backed_ahead_bytes += world.figures().backed_ahead_bytes;
    total->denied_restores += world.figures().denied_restores;
    total->copied_in_bytes += world.figures().copied_in_bytes;
  }
  return "";
}

TEST(ReclaimPropertyTest, EveryPlanKeepsTheRulesAndTheBooksAddUp) {
  WorldOptions options = SlowWorld();
  options.back_ahead = true;
  options.use_forecast = true;
  ReclaimWorld::Figures total;
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  // So many, because pauses are rare.
  const uint64_t count =
      FromEnvironment("GMB_QUOTA_SEEDS", FewerIfSanitized(100));
  ASSERT_EQ(RunSeeds(options, first, count, &total), "");
  std::cout << "seeds " << first << " to " << first + count - 1 << ": "
            << total.evictions << " evictions, " << total.pauses << " pauses, "
            << total.pauses_withdrawn << " withdrawn, " << total.kills
            << " kills, " << total.backed_ahead_bytes << " bytes backed ahead, "
            << total.copied_in_bytes << " copied back, "
            << total.denied_restores << " restores denied\n";
  if (count < 100) return;
  EXPECT_GT(total.evictions, 10 * count);
  EXPECT_GT(total.pauses, 0u);
  EXPECT_GT(total.pauses_withdrawn, 0u);
  EXPECT_GT(total.kills, 0u);
  EXPECT_GT(total.backed_ahead_bytes, count);
}

// A planner that is told something untrue makes each of these mistakes; each
// has to be noticed.
struct Mistake {
  const char* name;
  std::function<void(std::vector<LeaseRow>&, std::vector<TenantRow>&, Demand&)>
      lie;
};

TEST(ReclaimPropertyTest, MistakesOfAPlannerAreNoticed) {
  const std::vector<Mistake> mistakes = {
      {"active sessions taken for parked",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) {
           if (row.gate == Gate::kActive) row.gate = Gate::kParked;
         }
       }},
      {"guarantees forgotten",
       [](auto&, auto& tenants, auto&) {
         for (TenantRow& row : tenants) row.guarantee_bytes = 0;
       }},
      {"back-off forgotten",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) row.back_off_until = {};
       }},
      {"failed pauses forgotten",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) row.no_pause_until = {};
       }},
      {"residency forgotten",
       [](auto& leases, auto& tenants, auto&) {
         for (LeaseRow& row : leases) row.restore_time = {};
         for (TenantRow& row : tenants) row.min_residency = {};
       }},
      {"hard leases taken for soft",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) row.contents = Contents::kPreserve;
       }},
      {"gaps forgotten",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) row.usual_gap = {};
       }},
      {"busy leases taken",
       [](auto& leases, auto&, auto&) {
         for (LeaseRow& row : leases) row.busy = false;
       }},
      {"pauses for those who borrow",
       [](auto&, auto&, Demand& demand) {
         demand.cause = Cause::kWithinGuarantee;
       }},
      {"more asked for than is lacking", [](auto&, auto&, Demand& demand) {
         for (Need& need : demand.needs) need.bytes += 20;
       }}};
  for (const Mistake& mistake : mistakes) {
    WorldOptions options = SlowWorld();
    options.plan = [&](const Snapshot& snapshot, const Demand& demand,
                       Instant now) {
      std::vector<LeaseRow> leases(snapshot.leases.begin(),
                                   snapshot.leases.end());
      std::vector<TenantRow> tenants(snapshot.tenants.begin(),
                                     snapshot.tenants.end());
      Demand asked = demand;
      mistake.lie(leases, tenants, asked);
      return MakePlan({leases, tenants, 0}, asked, now, options.planner);
    };
    const std::string found = RunSeeds(options, 1, 40);
    EXPECT_NE(found, "") << mistake.name;
    std::cout << mistake.name << ": " << found << "\n";
  }
}

// Works for ever: again as soon as it was served and is done.
struct Worker {
  SessionId session;
  uint64_t served = 0;
  uint64_t denied = 0;
  Instant asked{};
  Nanoseconds longest_wait{0};
};

void KeepWorking(ReclaimWorld& world, Worker& worker, Nanoseconds work,
                 Nanoseconds pause, Nanoseconds wait) {
  worker.asked = world.now();
  world.Work(worker.session, work, wait, [&, work, pause, wait](bool served) {
    worker.longest_wait =
        std::max(worker.longest_wait, world.now() - worker.asked);
    ++(served ? worker.served : worker.denied);
    world.At(world.now() + work + pause, [&, work, pause, wait] {
      KeepWorking(world, worker, work, pause, wait);
    });
  });
}

TEST(ReclaimProgressTest, TwoThatTogetherExceedThePoolAlternate) {
  ReclaimWorld world(SlowWorld());
  world.AddPool(kPool, 100, 1);
  std::vector<Worker> workers(2);
  for (uint64_t i = 0; i < 2; ++i) {
    TenantSetup setup = QuotaOf(0, 100);
    setup.min_residency = seconds(1);
    world.AddTenant(TenantId{i + 1}, setup);
    workers[i].session = world.AddSession(TenantId{i + 1});
    world.Acquire(workers[i].session, kPool, 60, false, Contents::kPreserve,
                  seconds(30), [&, i](bool) {
                    KeepWorking(world, workers[i], milliseconds(50),
                                milliseconds(10), seconds(20));
                  });
  }
  world.RunUntil(Instant{} + seconds(120));
  EXPECT_EQ(world.Check(), "");
  for (const Worker& worker : workers) {
    EXPECT_EQ(worker.denied, 0u);
    EXPECT_GT(worker.served, 300u);
    EXPECT_LT(worker.longest_wait, seconds(3));
  }
  // Each turn lasts for the residency, and no less.
  EXPECT_LE(world.figures().evictions, 120u);
  EXPECT_GT(world.figures().evictions, 60u);
}

// 40 bytes take 40 ms each way, which is much beside a heartbeat of 200 ms.
TEST(ReclaimProgressTest, AHeartbeatKeepsItsMemoryWhileCalmOnesGiveEnough) {
  ReclaimWorld world(SlowWorld());
  world.AddPool(kPool, 100, 1);
  for (uint64_t i = 1; i <= 3; ++i)
    world.AddTenant(TenantId{i}, QuotaOf(0, 100));
  Worker heartbeat{.session = world.AddSession(TenantId{1})};
  Worker calm{.session = world.AddSession(TenantId{2})};
  Worker borrower{.session = world.AddSession(TenantId{3})};
  world.Acquire(heartbeat.session, kPool, 40, false, Contents::kPreserve,
                seconds(1), [&](bool) {
                  KeepWorking(world, heartbeat, milliseconds(1),
                              milliseconds(200), seconds(10));
                });
  world.Acquire(calm.session, kPool, 40, false, Contents::kPreserve, seconds(1),
                [&](bool) {
                  KeepWorking(world, calm, milliseconds(1), seconds(20),
                              seconds(10));
                });
  uint64_t of_heartbeat = 0;
  uint64_t of_calm = 0;
  world.set_watch(
      [&](const Snapshot&, const Demand& demand, Instant, const Plan& plan) {
        for (const Victim& victim : plan.victims) {
          if (demand.session != borrower.session) continue;
          of_heartbeat += victim.session == heartbeat.session ? 1 : 0;
          of_calm += victim.session == calm.session ? 1 : 0;
        }
        return true;
      });
  uint64_t served = 0;
  for (int i = 0; i < 100; ++i) {
    world.At(Instant{} + milliseconds(3000 + 1000 * i), [&] {
      world.Acquire(borrower.session, kPool, 50, false, Contents::kDiscard,
                    milliseconds(900), [&](bool granted) {
                      if (!granted) return;
                      ++served;
                      world.Release(world.granted());
                    });
    });
  }
  world.RunUntil(Instant{} + seconds(120));
  EXPECT_EQ(world.Check(), "");
  EXPECT_EQ(served, 100u);
  EXPECT_GT(of_calm, 0u);
  EXPECT_LE(of_heartbeat, of_calm / 5);
  EXPECT_EQ(heartbeat.denied, 0u);
}

TEST(ReclaimProgressTest, NobodyStarvesAmongMany) {
  ReclaimWorld world(SlowWorld());
  world.AddPool(kPool, 100, 1);
  std::vector<Worker> workers(9);
  for (uint64_t i = 0; i < workers.size(); ++i) {
    TenantSetup setup = QuotaOf(0, 100, static_cast<double>(1 + i % 3));
    setup.min_residency = milliseconds(300);
    world.AddTenant(TenantId{i + 1}, setup);
    workers[i].session = world.AddSession(TenantId{i + 1});
    // Small ones and one that needs most of the pool.
    world.Acquire(workers[i].session, kPool, i == 0 ? 90 : 20 + i, false,
                  Contents::kPreserve, seconds(100), [&, i](bool served) {
                    ASSERT_TRUE(served);
                    KeepWorking(world, workers[i], milliseconds(40),
                                milliseconds(15), seconds(100));
                  });
  }
  world.RunUntil(Instant{} + seconds(200));
  EXPECT_EQ(world.Check(), "");
  for (const Worker& worker : workers) {
    EXPECT_EQ(worker.denied, 0u);
    EXPECT_GT(worker.served, 15u) << worker.session.value;
    EXPECT_LT(worker.longest_wait, seconds(60)) << worker.session.value;
  }
}

// Tenants that stay within their guarantees, among borrowers that are active
// most of the time and wait within their scopes.
TEST(ReclaimProgressTest, WhatAGuaranteePromisedIsServedWithinItsDeadline) {
  uint64_t pauses = 0, pausing_denials = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    ReclaimWorld world(SlowWorld());
    world.AddPool(kPool, 100, 1);
    world.AddPool(kOther, 100, 1);
    std::vector<Worker> owners(3), borrowers(4);
    for (uint64_t i = 0; i < 7; ++i) {
      TenantSetup setup = QuotaOf(i < 3 ? 25 : 0, 100);
      setup.pause_grace = seconds(2);
      setup.min_residency = milliseconds(random() % 500);
      world.AddTenant(TenantId{i + 1}, setup);
      Worker& worker = i < 3 ? owners[i] : borrowers[i - 3];
      worker.session = world.AddSession(TenantId{i + 1});
      const Nanoseconds wait =
          i < 3 ? seconds(10) : milliseconds(random() % 4000);
      const Nanoseconds work = milliseconds(1 + random() % 900);
      const Nanoseconds idle = milliseconds(random() % (i < 3 ? 3000 : 20));
      const auto start = [&, wait, work, idle](bool) {
        KeepWorking(world, worker, work, idle, wait);
      };
      const uint64_t bytes = i < 3 ? 25 : 30 + random() % 30;
      const bool both = random() % 2 == 0;
      world.At(Instant{} + milliseconds(i < 3 ? 2000 + random() % 2000 : 0),
               [&, bytes, both, start, session = worker.session] {
                 if (both) {
                   world.Acquire(session, kOther, bytes, false,
                                 Contents::kPreserve, seconds(10), {});
                 }
                 world.Acquire(session, kPool, bytes, false,
                               Contents::kPreserve, seconds(10), start);
               });
    }
    // A scope that waits for more memory would hold a pause up for ever.
    for (int i = 0; i < 200; ++i) {
      world.At(Instant{} + milliseconds(300 * i), [&] {
        const SessionId session = borrowers[random() % 4].session;
        if (!world.IsWorking(session)) return;
        world.Acquire(session, kPool, 10, false, Contents::kDiscard,
                      seconds(30), [&, session](bool served) {
                        pausing_denials += !served;
                        const auto leases = world.LeasesOf(session);
                        if (served && leases.size() > 2)
                          world.Release(leases.back());
                      });
      });
    }
    world.RunUntil(Instant{} + seconds(60));
    EXPECT_EQ(world.Check(), "");
    for (const Worker& worker : owners) {
      EXPECT_EQ(worker.denied, 0u) << worker.session.value;
      EXPECT_GT(worker.served, 5u) << worker.session.value;
      EXPECT_LT(worker.longest_wait, seconds(8));
    }
    pauses += world.figures().pauses;
  }
  EXPECT_GT(pauses, 20u);
  EXPECT_GT(pausing_denials, 0u);
}

// It is paused as a whole: for its second lease no sooner than for its first.
TEST(ReclaimProgressTest, OneThatNeverParksIsPausedOnceInAWhile) {
  ReclaimWorld world(SlowWorld());
  world.AddPool(kPool, 100, 1);
  TenantSetup borrows = QuotaOf(0, 100);
  borrows.pause_grace = seconds(1);
  world.AddTenant(TenantId{1}, borrows);
  world.AddTenant(TenantId{2}, QuotaOf(50, 100));
  const SessionId busy = world.AddSession(TenantId{1}, Manners::kNeverParks);
  for (int i = 0; i < 2; ++i) {
    world.Acquire(busy, kPool, 40, false, Contents::kPreserve, seconds(1), {});
  }
  world.Work(busy, seconds(100), seconds(1), {});
  const SessionId owner = world.AddSession(TenantId{2});
  world.At(Instant{} + seconds(1), [&] {
    world.Acquire(owner, kPool, 50, false, Contents::kPreserve, seconds(60),
                  {});
  });
  world.RunUntil(Instant{} + seconds(11));
  EXPECT_EQ(world.figures().pauses, 1u);
  world.RunUntil(Instant{} + seconds(13));
  EXPECT_EQ(world.figures().pauses, 2u) << "and then it is tried anew";
  EXPECT_EQ(world.Check(), "");
}

// One that borrows among tenants whose scopes last for `t` at most, and who
// come back as soon as they can.
TEST(ReclaimProgressTest, AHeadIsServedIfAllInItsWayParkInTime) {
  int let_pass = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const Nanoseconds t = milliseconds(100 + random() % 16'000);
    ReclaimWorld world(SlowWorld());
    world.AddPool(kPool, 100, 1);
    std::vector<Worker> workers(5);
    for (uint64_t i = 0; i < workers.size(); ++i) {
      world.AddTenant(TenantId{i + 1}, QuotaOf(0, 100));
      workers[i].session = world.AddSession(TenantId{i + 1});
      // They fit together, so that nobody waits before it.
      world.Acquire(workers[i].session, kPool, 10 + random() % 10, false,
                    Contents::kPreserve, seconds(1000), [&, i, t](bool) {
                      // Parked for as long as the copies of all take.
                      const Nanoseconds scope =
                          t - milliseconds(random() % 1000) * (t / seconds(4));
                      KeepWorking(world, workers[i], scope, milliseconds(150),
                                  seconds(1000));
                    });
    }
    world.AddTenant(TenantId{9}, QuotaOf(0, 100));
    const SessionId head = world.AddSession(TenantId{9});
    std::optional<Nanoseconds> waited;
    const Instant begun =
        Instant{} + seconds(40) + milliseconds(random() % 999);
    world.At(begun, [&] {
      world.Acquire(head, kPool, 60 + random() % 40, false, Contents::kPreserve,
                    seconds(1000), [&](bool) { waited = world.now() - begun; });
    });
    // Those whose leases it collected in vain for 8 s are back.
    world.RunUntil(begun + seconds(10));
    if (!waited) {
      EXPECT_EQ(world.engine().waiting(), 1u);
      ++let_pass;
    }
    world.RunUntil(begun + 4 * t + seconds(4));
    EXPECT_EQ(world.Check(), "");
    EXPECT_TRUE(waited.has_value()) << "T is " << t.count();
  }
  EXPECT_GT(let_pass, 0);
}

// One that waits for an hour for what never comes, because a lease in its way
// is hard, or its program is always busy.
TEST(ReclaimProgressTest, OneThatCannotBeServedStopsNobodysReclaim) {
  for (const bool busy : {false, true}) {
    SCOPED_TRACE(busy);
    ReclaimWorld world(SlowWorld());
    world.AddPool(kPool, 100, 1);
    for (uint64_t i = 1; i <= 4; ++i) {
      TenantSetup setup = QuotaOf(0, 100);
      setup.min_residency = milliseconds(200);
      world.AddTenant(TenantId{i}, setup);
    }
    const SessionId keeper = world.AddSession(TenantId{1});
    world.Acquire(
        keeper, kPool, 30, !busy, Contents::kPreserve, seconds(1),
        [&](bool) { world.Work(keeper, seconds(4000), seconds(1), {}); });
    std::vector<Worker> workers(2);
    for (uint64_t i = 0; i < 2; ++i) {
      workers[i].session = world.AddSession(TenantId{i + 2});
      world.Acquire(workers[i].session, kPool, 40, false, Contents::kPreserve,
                    seconds(30), [&, i](bool) {
                      KeepWorking(world, workers[i], milliseconds(50),
                                  milliseconds(50), seconds(1000));
                    });
    }
    const SessionId head = world.AddSession(TenantId{4});
    world.At(Instant{} + seconds(1), [&] {
      world.Acquire(head, kPool, 90, false, Contents::kPreserve, seconds(3600),
                    {});
    });
    world.RunUntil(Instant{} + seconds(10));
    for (Worker& worker : workers) worker.served = 0;
    world.RunUntil(Instant{} + seconds(1600));
    EXPECT_EQ(world.Check(), "");
    // Both do not fit at once: each came back again and again by eviction.
    for (const Worker& worker : workers) {
      EXPECT_EQ(worker.denied, 0u);
      EXPECT_GT(worker.served, 1000u);
    }
  }
}

TEST(ReclaimProgressTest, RestoresOfSeveralPoolsDoNotWaitForEachOther) {
  ReclaimWorld world(SlowWorld());
  world.AddPool(kPool, 100, 1);
  world.AddPool(kOther, 100, 1);
  std::vector<Worker> workers(4);
  for (uint64_t i = 0; i < 4; ++i) {
    TenantSetup setup = QuotaOf(0, 100);
    setup.min_residency = milliseconds(200);
    world.AddTenant(TenantId{i + 1}, setup);
    workers[i].session = world.AddSession(TenantId{i + 1});
    // Large in one pool, small in the other, crosswise.
    world.Acquire(workers[i].session, kPool, i % 2 == 0 ? 70 : 40, false,
                  Contents::kPreserve, seconds(100), {});
    world.Acquire(workers[i].session, kOther, i % 2 == 0 ? 40 : 70, false,
                  Contents::kPreserve, seconds(100), [&, i](bool served) {
                    ASSERT_TRUE(served);
                    KeepWorking(world, workers[i], milliseconds(30),
                                milliseconds(15), seconds(60));
                  });
  }
  world.RunUntil(Instant{} + seconds(300));
  EXPECT_EQ(world.Check(), "");
  for (const Worker& worker : workers) {
    EXPECT_EQ(worker.denied, 0u) << worker.session.value;
    EXPECT_GT(worker.served, 50u) << worker.session.value;
    EXPECT_LT(worker.longest_wait, seconds(20)) << worker.session.value;
  }
}

}  // namespace
}  // namespace gmb::quota
