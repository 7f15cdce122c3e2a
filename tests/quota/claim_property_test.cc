// A claim's promises to the head of a queue, and to those behind it, among
// crowds that take whatever they get. The engine and the reference model run
// side by side. GMB_QUOTA_SEED sets the first seed, GMB_QUOTA_SEEDS how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/quota/describe.h"
#include "tests/quota/from_environment.h"
#include "tests/quota/reference_model.h"
#include "tests/sanitized.h"

namespace gmb::quota {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr PoolId kPools[] = {PoolId{1}, PoolId{2}};
constexpr TenantId kHead{1}, kKeeper{2}, kOwner{3}, kSecond{4};
constexpr uint64_t kFirstOfCrowd = 5, kCrowd = 3;
constexpr uint64_t kPoolBytes = 100;

// The engine and the reference model, which must say the same.
class Both {
 public:
  Effects Handle(const Event& event, Instant now) {
    const Effects effects = engine_.Handle(event, now);
    const std::string engine_says = DescribeAnswers(effects);
    const std::string model_says = DescribeAnswers(model_.Handle(event, now));
    const bool same = engine_says == model_says &&
                      engine_.NextDeadline() == model_.NextDeadline();
    if (!same && problem_.empty()) {
      problem_ = absl::StrCat("after ", Describe(event), " at ", now.ns,
                              " the engine says ", engine_says,
                              " and the reference model ", model_says);
    }
    return effects;
  }
  const Engine& engine() const { return engine_; }
  const std::string& problem() const { return problem_; }

 private:
  Engine engine_;
  ReferenceModel model_{EngineOptions{}};
  std::string problem_;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    for (const PoolId pool : kPools) Do(PoolSet{pool, kPoolBytes, 1});
    for (uint64_t i = 1; i < kFirstOfCrowd + kCrowd; ++i) {
      const TenantId tenant{i};
      Do(TenantSet{.tenant = tenant});
      for (const PoolId pool : kPools) SetQuota(tenant, pool, 0);
    }
  }

 protected:
  void SetQuota(TenantId tenant, PoolId pool, uint64_t guarantee) {
    Do(QuotaSet{pool,
                tenant,
                {Amount::Bytes(guarantee), Amount::Bytes(kPoolBytes), 1}});
  }
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  Nanoseconds Up(Nanoseconds most) {
    return Nanoseconds(
        1 + static_cast<int64_t>(Below(static_cast<uint64_t>(most.count()))));
  }

  // Its lease, if it is granted at once.
  std::optional<LeaseId> Ask(TenantId tenant, PoolId pool, uint64_t bytes,
                             bool hard, Nanoseconds wait = Nanoseconds(0)) {
    const RequestId request{++last_request_};
    Do(Acquire{.request = request,
               .session = SessionId{tenant.value},
               .tenant = tenant,
               .pool = pool,
               .bytes = bytes,
               .deadline = now_ + wait,
               .hard = hard});
    const auto lease = granted_.find(request);
    if (lease == granted_.end()) return std::nullopt;
    return lease->second;
  }

  void Do(const Event& event) {
    for (const Effect& effect : both_.Handle(event, now_)) {
      if (const auto* granted = std::get_if<Granted>(&effect)) {
        granted_[granted->request] = granted->lease;
        OnGranted(*granted);
      }
      if (const auto* restored = std::get_if<Restored>(&effect)) {
        restored_.insert(restored->request);
      }
    }
  }
  virtual void OnGranted(const Granted&) {}
  virtual ~World() = default;

  bool IsServed(RequestId request) const {
    return granted_.contains(request) || restored_.contains(request);
  }

  Both both_;
  Instant now_;
  uint64_t last_request_ = 0;
  std::map<RequestId, LeaseId> granted_;
  std::set<RequestId> restored_;

 private:
  std::mt19937_64 random_;
};

// A head among tenants whose leases last for `t` at most, and who take all that
// they get at each moment.
class Crowded : public World {
 public:
  explicit Crowded(uint64_t seed)
      : World(seed), t_(milliseconds(50) + Up(seconds(1 << Below(7)))) {
    // These bytes stay: the crowd has always borrowed more than the head.
    const uint64_t kept = Below(30), owned = Below(30);
    for (const PoolId pool : kPools) {
      SetQuota(kOwner, pool, owned);
      Ask(kKeeper, pool, 1 + kept, true);
      for (uint64_t i = 0; i < kCrowd; ++i) Ask(Member(i), pool, 1, true);
    }
    most_ = kPoolBytes - 1 - kept - kCrowd;
    most_hard_ = most_ - owned;
  }

  // Returns what went wrong.
  std::string Run() {
    AskForHead();
    begun_ = now_;
    const Instant latest = begun_ + 4 * t_ + seconds(4);
    while (!IsServed(head_)) {
      Crowd();
      if (!both_.problem().empty()) return both_.problem();
      Instant next = now_ + Up(t_ / 2);
      if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
      if (const auto due = both_.engine().NextDeadline()) {
        next = std::min(next, *due);
      }
      if (next > latest) {
        return absl::StrCat("not served for ", (latest - begun_).count() / 1e9,
                            " s, with leases of ", t_.count() / 1e9, " s");
      }
      now_ = next;
      Do(Tick{});
      EndLeases();
    }
    return both_.problem();
  }

  double waited_in_t() const {
    return static_cast<double>((now_ - begun_).count()) /
           static_cast<double>(t_.count());
  }
  // Granted to others after the head's first hold.
  uint64_t passed() const { return passed_; }
  Nanoseconds t() const { return t_; }

 private:
  TenantId Member(uint64_t i) const { return TenantId{kFirstOfCrowd + i}; }

  void AskForHead() {
    const Nanoseconds wait = 100 * t_ + seconds(100);
    const bool restores = Below(2) == 0;
    std::vector<LeaseId> leases;
    if (restores) {
      for (const PoolId pool : kPools) {
        leases.push_back(*Ask(kHead, pool, 1 + Below(most_), false));
        Do(Evicted{leases.back()});
      }
    }
    begun_ = now_ = Instant{} + Up(seconds(10));
    for (int i = 0; i < 30; ++i) Crowd();
    if (restores) {
      head_ = RequestId{++last_request_};
      Do(Restore{.request = head_,
                 .session = SessionId{kHead.value},
                 .leases = leases,
                 .deadline = now_ + wait});
      return;
    }
    const bool hard = Below(2) == 0 && most_hard_ > 0;
    head_ = RequestId{last_request_ + 1};
    Ask(kHead, kPools[0], 1 + Below(hard ? most_hard_ : most_), hard, wait);
  }

  void Crowd() {
    for (uint64_t n = 1 + Below(4); n > 0; --n) {
      const TenantId tenant = Member(Below(kCrowd));
      const PoolId pool = kPools[Below(2)];
      const bool hard = Below(2) == 0;
      const TenantPoolView view = *both_.engine().TenantPool(tenant, pool);
      const uint64_t most =
          hard ? view.obtainable_bytes : view.obtainable_soft_bytes;
      const bool waits = Below(6) == 0;
      if (most == 0 && !waits) continue;
      const uint64_t bytes = waits           ? 1 + Below(20)
                             : Below(2) == 0 ? most
                                             : 1 + Below(most);
      Ask(tenant, pool, bytes, hard, waits ? Up(2 * t_) : Nanoseconds(0));
    }
  }

  void OnGranted(const Granted& granted) override {
    if (granted.tenant.value < kFirstOfCrowd || now_ == Instant{}) return;
    passed_ += now_ > begun_ + seconds(2) && granted.request > head_;
    ends_.emplace(now_ + (Below(3) != 0 ? t_ : Up(t_)), granted.lease);
  }

  // They end, or are parked and taken.
  void EndLeases() {
    while (!ends_.empty() && ends_.begin()->first <= now_) {
      const LeaseId lease = ends_.begin()->second;
      ends_.erase(ends_.begin());
      if (!both_.engine().Lease(lease)->hard && Below(2) == 0) {
        Do(Evicted{lease});
      }
      Do(Released{lease});
    }
  }

  const Nanoseconds t_;
  uint64_t most_ = 0, most_hard_ = 0;
  RequestId head_;
  Instant begun_;
  uint64_t passed_ = 0;
  std::multimap<Instant, LeaseId> ends_;
};

TEST(ClaimPropertyTest, AHeadIsServedWithin4TAnd4sIfAllInItsWayEndsWithinT) {
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  const uint64_t count =
      FromEnvironment("GMB_QUOTA_SEEDS", FewerIfSanitized(100));
  double longest = 0;
  uint64_t passed = 0, past_a_window = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Crowded world(seed);
    ASSERT_EQ(world.Run(), "")
        << "repeat with GMB_QUOTA_SEED=" << seed << " GMB_QUOTA_SEEDS=1";
    if (world.t() > seconds(10)) {
      longest = std::max(longest, world.waited_in_t());
      passed += world.passed();
      past_a_window += world.waited_in_t() > 1.5;
    }
  }
  std::cout << "seeds " << first << " to " << first + count - 1
            << ": longest wait " << longest << " T, " << passed
            << " passed in later windows\n";
  if (count < 100) return;
  EXPECT_GT(past_a_window, 0u);
  EXPECT_GT(passed, count);
}

// Requests that cannot be served, and one who tries to borrow beside them.
class Hopeless : public World {
 public:
  explicit Hopeless(uint64_t seed) : World(seed) {
    const uint64_t kept = 10 + Below(40);
    // Bytes that can be taken, and are not: their program is busy for ever.
    const uint64_t busy = Below(2) * Below(30);
    Ask(kKeeper, kPools[0], kept, true);
    if (busy > 0) Ask(kOwner, kPools[0], busy, false);
    Ask(Prober(), kPools[0], 1, true);
    const uint64_t free = kPoolBytes - 1 - kept - busy;
    now_ = Instant{} + Up(seconds(10));
    begun_ = now_;
    AskFor(kHead, free);
    if (Below(2) == 0) second_at_ = begun_ + Up(seconds(20));
    free_ = free;
  }

  // Returns what went wrong, over so many windows in which others passed.
  std::string Run(int windows) {
    constexpr Nanoseconds kStep = milliseconds(125);
    int64_t passed = 0, refused = 0, hold = 0, open = 0;
    now_ = begun_ + kStep / 2;
    while (windows > 0) {
      if (now_ >= second_at_) {
        second_at_ = Instant::Max();
        AskFor(kSecond, free_);
      }
      const auto lease = Ask(Prober(), kPools[0], 1, Below(2) == 0);
      if (lease) Do(Released{*lease});
      if (!both_.problem().empty()) return both_.problem();
      if (lease) {
        ++open;
      } else if (open > 0) {  // a hold begins
        if (hold > 0 && open < hold) {
          return absl::StrCat("held for ", hold, " and open for ", open);
        }
        passed += open;
        if (refused > passed) {
          return absl::StrCat(refused, " of ", refused + passed, " refused");
        }
        --windows;
        open = 0;
        hold = 0;
      }
      if (!lease) {
        ++hold;
        ++refused;
      }
      if (now_ > begun_ + std::chrono::hours(9)) return "it holds for ever";
      now_ = now_ + kStep;
    }
    return "";
  }

 private:
  TenantId Prober() const { return TenantId{kFirstOfCrowd}; }
  // More than is free, or can come free.
  void AskFor(TenantId tenant, uint64_t free) {
    Ask(tenant, kPools[0], free + 1 + Below(kPoolBytes - free), Below(2) == 0,
        std::chrono::hours(10));
  }

  Instant begun_;
  Instant second_at_ = Instant::Max();
  uint64_t free_ = 0;
};

TEST(ClaimPropertyTest, OneThatCannotBeServedLeavesOthersHalfOfTheTime) {
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  const uint64_t count =
      FromEnvironment("GMB_QUOTA_SEEDS", FewerIfSanitized(40));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ASSERT_EQ(Hopeless(seed).Run(6), "")
        << "repeat with GMB_QUOTA_SEED=" << seed << " GMB_QUOTA_SEEDS=1";
  }
}

}  // namespace
}  // namespace gmb::quota
