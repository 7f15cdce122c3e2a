// Memory ahead of need: each rule by an example that just keeps it and one that
// just breaks it, and random pools judged by a second, plain reading.
#include "tests/quota/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/quota/from_environment.h"

namespace gmb::quota {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr PoolId kPool{1};
constexpr uint64_t kGiB = uint64_t{1} << 30;

// A pool of 100 GiB of which 5 are free, and somebody waited a minute ago. One
// session of tenant 1, without a guarantee, is parked with 10 GiB: out and back
// take 0.5 s with the rate below.
class AheadTest : public ::testing::Test {
 protected:
  AheadTest() {
    options.low = 0.1;
    options.high = 0.2;
    planner.copy_bytes_per_second = 40 * kGiB;
    tenants.push_back(
        {.tenant = TenantId{1}, .pool = kPool, .resident_bytes = 10 * kGiB});
    leases.push_back({.lease = LeaseId{7},
                      .session = SessionId{3},
                      .tenant = TenantId{1},
                      .pool = kPool,
                      .bytes = 10 * kGiB,
                      .gate = Gate::kParked,
                      .host_room = true,
                      .idle_since = now + -seconds(10),
                      .session_bytes = 10 * kGiB});
    pool.waited_at = now + -minutes(1);
  }

  LeaseRow& lease() { return leases.front(); }
  [[nodiscard]] std::vector<LeaseId> Take() const {
    return TakeAhead({leases, tenants}, pool, sessions, now, options, planner);
  }
  [[nodiscard]] bool Takes() const {
    return Take() == std::vector<LeaseId>{LeaseId{7}};
  }
  // True before `change`, and not after it; which is undone.
  [[nodiscard]] bool Forbids(const std::function<void()>& change) {
    const auto before =
        std::make_tuple(leases, tenants, sessions, pool, options);
    if (!Takes()) return false;
    change();
    const bool takes = !Take().empty();
    std::tie(leases, tenants, sessions, pool, options) = before;
    return !takes;
  }

  Instant now = Instant{0} + std::chrono::hours(10);
  std::vector<LeaseRow> leases;
  std::vector<TenantRow> tenants;
  std::vector<AheadSession> sessions;
  AheadPool pool{
      .pool = kPool, .capacity_bytes = 100 * kGiB, .free_bytes = 5 * kGiB};
  AheadOptions options;
  PlannerOptions planner;
};

TEST_F(AheadTest, NothingIsTakenUnlessItIsOn) {
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { options.low = 0; }));
  EXPECT_TRUE(Forbids([&] { options = AheadOptions(); }));
}

TEST_F(AheadTest, BetweenTheMarksNothingBegins) {
  pool.free_bytes = 10 * kGiB - 1;
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { pool.free_bytes = 10 * kGiB; }));
  EXPECT_TRUE(Forbids([&] { pool.incoming_bytes = 1; })) << "it is coming";
}

TEST_F(AheadTest, OnlyWhereSomebodyWaitedLatelyAndNobodyDoesNow) {
  pool.waited_at = now + -minutes(10);
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(
      Forbids([&] { pool.waited_at = now + -minutes(10) + -seconds(1); }));
  EXPECT_TRUE(Forbids([&] { pool.waited_at.reset(); }));
  EXPECT_TRUE(Forbids([&] { pool.anybody_waits = true; }));
}

TEST_F(AheadTest, OnlySoftParkedMemoryOfOneSession) {
  EXPECT_TRUE(Forbids([&] { lease().contents = Contents::kResident; }));
  EXPECT_TRUE(Forbids([&] { lease().evictable = false; }));
  EXPECT_TRUE(Forbids([&] { lease().no_room = true; }));
  EXPECT_TRUE(Forbids([&] { lease().gate = Gate::kActive; }));
  EXPECT_TRUE(Forbids([&] { lease().gate = Gate::kOff; }));
  EXPECT_TRUE(Forbids([&] { lease().busy = true; }));
  EXPECT_TRUE(Forbids([&] { lease().evicted = true; }));
  EXPECT_TRUE(Forbids([&] { lease().users = {SessionId{3}}; })) << "shared";
  EXPECT_TRUE(Forbids([&] { lease().group = GroupId{1}; }));
  EXPECT_TRUE(Forbids([&] { lease().owed_by_process = 1; }));
  EXPECT_TRUE(Forbids([&] { tenants[0].owed_answers = 1; }));
  EXPECT_TRUE(Forbids([&] { lease().back_off_until = now + seconds(1); }));
  lease().contents = Contents::kDiscard;
  EXPECT_TRUE(Takes()) << "it is dropped without a copy";
}

TEST_F(AheadTest, NobodyFallsBelowHisGuarantee) {
  tenants[0].resident_bytes = 14 * kGiB;
  tenants[0].guarantee_bytes = 4 * kGiB;
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { tenants[0].guarantee_bytes += 1; }));
  EXPECT_TRUE(Forbids([&] {
    leases.push_back(lease());  // on its way out already
    leases.back().lease = LeaseId{8};
    leases.back().bytes = 1;
    leases.back().busy = true;
  }));
}

TEST_F(AheadTest, OnlyWhatHasBeenIdleForLong) {
  EXPECT_TRUE(Forbids([&] { lease().idle_since.ns += 1; })) << "10 s";
  EXPECT_TRUE(Forbids([&] { lease().restore_time = milliseconds(2300); }))
      << "four times (0.25 + 2.3) s";
  lease().usual_gap = seconds(20);
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { lease().usual_gap += seconds(1); }));
}

TEST_F(AheadTest, OnlyWhatHasBeenResidentForLong) {
  lease().restore_time = seconds(1);
  lease().resident_since = now + -seconds(4);
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { lease().resident_since.ns += 1; }));
  EXPECT_TRUE(Forbids([&] { tenants[0].min_residency = seconds(5); }));
}

TEST_F(AheadTest, OnceUntilItIsUsedAndNotAtOnceAfterItWasBroughtBack) {
  EXPECT_TRUE(Forbids(
      [&] { sessions.push_back({.session = SessionId{3}, .taken = true}); }));
  sessions.push_back({.session = SessionId{3},
                      .taken = true,
                      .brought_back = now + -minutes(1)});
  EXPECT_TRUE(Takes());
  EXPECT_TRUE(Forbids([&] { sessions[0].brought_back->ns += 1; }));
}

TEST_F(AheadTest, AsMuchAsTheHighMarkWantsOfTheLongestIdle) {
  for (uint64_t i = 1; i <= 3; ++i) {
    LeaseRow other = lease();
    other.lease = LeaseId{10 + i};
    other.session = SessionId{4};
    other.bytes = 6 * kGiB;
    other.session_bytes = 18 * kGiB;
    other.idle_since = now + -seconds(100);
    tenants[0].resident_bytes += other.bytes;
    leases.push_back(other);
  }
  // 5 + 3 x 6 GiB are the first to reach 20.
  EXPECT_EQ(Take().size(), 3u);
  pool.free_bytes = 9 * kGiB;
  EXPECT_EQ(Take(), (std::vector<LeaseId>{LeaseId{11}, LeaseId{12}}));
}

class BringBackTest : public AheadTest {
 protected:
  BringBackTest() {
    options.bring_back = true;
    lease().gate = Gate::kClosed;
    lease().evicted = true;
    pool.free_bytes = 30 * kGiB;
    sessions.push_back({.session = SessionId{3},
                        .taken = true,
                        .used_at = now + -seconds(59),
                        .usual_gap = minutes(1)});
  }
  [[nodiscard]] bool Comes() const {
    return BringBackAhead({leases, tenants}, pool, sessions, now, options,
                          planner) == SessionId{3};
  }
};

TEST_F(BringBackTest, ComesWhenItIsExpected) {
  EXPECT_TRUE(Comes());
  sessions[0].used_at->ns += 1;
  EXPECT_FALSE(Comes()) << "too early";
  sessions[0].used_at = now + -seconds(91);
  EXPECT_FALSE(Comes()) << "it comes no more as it used to";
  sessions[0].used_at = now + -seconds(90);
  EXPECT_TRUE(Comes());
  sessions[0].usual_gap = seconds(0);
  EXPECT_FALSE(Comes()) << "nothing is known of it";
}

TEST_F(BringBackTest, TheHighMarkStaysFree) {
  pool.free_bytes = 30 * kGiB - 1;
  EXPECT_FALSE(Comes());
}

TEST_F(BringBackTest, NotBesideARequestNorTwice) {
  pool.anybody_waits = true;
  EXPECT_FALSE(Comes());
  pool.anybody_waits = false;
  sessions[0].brought_back = now;
  EXPECT_FALSE(Comes());
  sessions[0].brought_back.reset();
  options.bring_back = false;
  EXPECT_FALSE(Comes());
}

TEST_F(BringBackTest, NotWhileItsLeasesMove) {
  leases.push_back(lease());
  leases.back().lease = LeaseId{8};
  leases.back().evicted = false;
  leases.back().busy = true;
  EXPECT_FALSE(Comes());
}

// Random pools: what is taken keeps every rule, and where nothing is taken
// nothing might have been.
class RandomAheadTest : public AheadTest {
 protected:
  uint64_t Below(uint64_t bound) { return random() % bound; }
  Instant Ago(uint64_t most_seconds) {
    return now + -seconds(static_cast<int64_t>(Below(most_seconds)));
  }

  void Make() {
    leases.clear();
    tenants.clear();
    sessions.clear();
    pool.free_bytes = Below(24) * kGiB;
    pool.incoming_bytes = Below(3) == 0 ? Below(12) * kGiB : 0;
    pool.anybody_waits = Below(12) == 0;
    pool.waited_at.reset();
    if (Below(12) != 0) pool.waited_at = Ago(640);
    for (uint64_t i = 1; i <= 3; ++i) {
      tenants.push_back({.tenant = TenantId{i},
                         .pool = kPool,
                         .guarantee_bytes = Below(3) * 8 * kGiB});
    }
    const uint64_t count = 1 + Below(5);
    for (uint64_t id = 1; id <= count; ++id) AddSession(SessionId{id});
  }

  void AddSession(SessionId id) {
    const TenantId tenant{1 + Below(3)};
    const Gate gate = Below(5) == 0 ? Gate::kActive : Gate::kParked;
    const Instant idle_since = Ago(60);
    const Nanoseconds gap = seconds(Below(2) * Below(100));
    const uint64_t count = 1 + Below(4);
    for (uint64_t i = 0; i < count; ++i) {
      leases.push_back(
          {.lease = LeaseId{leases.size() + 1},
           .session = id,
           .tenant = tenant,
           .pool = PoolId{Below(8) == 0 ? 2u : 1u},
           .bytes = (1 + Below(6)) * kGiB,
           .contents = static_cast<Contents>(Below(3)),
           .gate = gate,
           .no_room = Below(8) == 0,
           .evicted = Below(6) == 0,
           .busy = Below(8) == 0,
           .idle_since = idle_since,
           .resident_since = Ago(60),
           .restore_time = milliseconds(Below(4000)),
           .back_off_until = Below(8) == 0 ? now + seconds(1) : Instant{0},
           .usual_gap = gap});
      if (!leases.back().evicted && leases.back().pool == kPool)
        tenants[tenant.value - 1].resident_bytes += leases.back().bytes;
    }
    if (Below(2) == 0) return;
    sessions.push_back({.session = id, .taken = Below(2) == 0});
    if (Below(2) == 0) sessions.back().brought_back = Ago(120);
  }

  // A plain reading of the rules, of one lease by itself.
  [[nodiscard]] bool MayGo(const LeaseRow& row) const {
    const TenantRow& tenant = tenants[row.tenant.value - 1];
    uint64_t stays = 0;
    for (const LeaseRow& other : leases) {
      if (other.tenant == row.tenant && other.pool == kPool && !other.evicted &&
          !other.busy && other.lease != row.lease)
        stays += other.bytes;
    }
    for (const AheadSession& session : sessions) {
      if (session.session != row.session || !session.taken) continue;
      if (!session.brought_back || now - *session.brought_back < minutes(1))
        return false;
    }
    const double copy =
        static_cast<double>(std::max(row.bytes, row.session_bytes)) /
        static_cast<double>(planner.copy_bytes_per_second);
    const double restore = static_cast<double>(row.restore_time.count()) * 1e-9;
    const double idle =
        static_cast<double>((now - row.idle_since).count()) * 1e-9;
    const double gap = static_cast<double>(row.usual_gap.count()) * 1e-9;
    const double resident =
        static_cast<double>((now - row.resident_since).count()) * 1e-9;
    return row.pool == kPool && row.gate == Gate::kParked && !row.evicted &&
           !row.busy && !row.no_room && row.contents != Contents::kResident &&
           now >= row.back_off_until && stays >= tenant.guarantee_bytes &&
           idle >= 10 && idle >= 4 * (copy + std::max(copy, restore)) - 1e-9 &&
           idle >= gap / 2 && resident >= 4 * restore - 1e-9;
  }

  void Judge() const {
    const std::vector<LeaseId> taken = Take();
    const uint64_t there = pool.free_bytes + pool.incoming_bytes;
    const bool may_begin = there < 10 * kGiB && !pool.anybody_waits &&
                           pool.waited_at &&
                           now - *pool.waited_at <= minutes(10);
    bool any = false;
    for (const LeaseRow& row : leases) any |= MayGo(row);
    EXPECT_EQ(!taken.empty(), may_begin && any);
    std::map<TenantId, uint64_t> left;
    for (const LeaseRow& row : leases) {
      const bool goes = std::count(taken.begin(), taken.end(), row.lease) > 0;
      EXPECT_TRUE(!goes || MayGo(row)) << "lease " << row.lease.value;
      if (row.pool == kPool && !row.evicted && !row.busy && !goes)
        left[row.tenant] += row.bytes;
    }
    uint64_t bytes = 0;
    for (const LeaseId id : taken) {
      const LeaseRow& row = leases[id.value - 1];
      EXPECT_EQ(row.session, leases[taken.front().value - 1].session);
      EXPECT_LT(there + bytes, 20 * kGiB) << "that was enough";
      bytes += row.bytes;
      EXPECT_GE(left[row.tenant],
                tenants[row.tenant.value - 1].guarantee_bytes);
    }
  }

  std::mt19937_64 random;
};

TEST_F(RandomAheadTest, WhatIsTakenKeepsTheRulesAndNothingIsForgotten) {
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  for (uint64_t seed = first; seed < first + 20'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random.seed(seed);
    Make();
    Judge();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gmb::quota
