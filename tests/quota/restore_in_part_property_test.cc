// Random runs of tenants whose leases leave and come back, with bytes that are
// on their way: the engine beside the reference model, which judges what comes
// back in part. GMB_QUOTA_SEED and GMB_QUOTA_SEEDS as in property_test.cc.
#include <gtest/gtest.h>

#include <iostream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/quota/describe.h"
#include "tests/quota/from_environment.h"
#include "tests/quota/invariants.h"
#include "tests/quota/reference_model.h"
#include "tests/sanitized.h"

namespace gmb::quota {
namespace {

constexpr PoolId kPool{1};
constexpr uint64_t kTenants = 4;
constexpr EngineOptions kOptions = {.pass_window = Nanoseconds(40),
                                    .covered_hold = Nanoseconds(90)};

class InPartRun {
 public:
  explicit InPartRun(uint64_t seed) : random_(seed) {
    Do(PoolSet{kPool, 100, 1});
    for (uint64_t tenant = 1; tenant <= kTenants; ++tenant) {
      Do(TenantSet{.tenant = TenantId{tenant}});
      const uint64_t guarantee = tenant == 1 ? 25 : 0;
      Do(QuotaSet{kPool,
                  TenantId{tenant},
                  {Amount::Bytes(guarantee), Amount::Bytes(90), 1}});
    }
  }

  void Step() {
    now_ = now_ + Nanoseconds(Below(8));
    const uint64_t kind = Below(20);
    if (kind < 7) return Acquire_();
    if (kind < 10) return Do(Evicted{SomeLease()});
    if (kind < 14) return BringBack();
    if (kind < 18) return Do(BytesLeaving{kPool, Below(80)});
    if (kind == 18) return Do(Released{SomeLease()});
    now_ = now_ + Nanoseconds(Below(60));
    Do(Tick{});
  }

  const std::string& problem() const { return problem_; }
  uint64_t in_part() const { return in_part_; }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  LeaseId SomeLease() {
    const auto& leases = checker_.leases();
    if (leases.empty()) return {};
    return std::next(leases.begin(),
                     static_cast<std::ptrdiff_t>(Below(leases.size())))
        ->first;
  }

  void Acquire_() {
    const uint64_t tenant = 1 + Below(kTenants);
    Do(Acquire{.request = RequestId{++last_request_},
               .session = SessionId{tenant},
               .tenant = TenantId{tenant},
               .pool = kPool,
               .bytes = 3 + Below(20),
               .deadline = now_ + Nanoseconds(Below(3) * Below(100)),
               .hard = Below(10) == 0});
  }

  void BringBack() {
    const uint64_t tenant = 1 + Below(kTenants);
    Restore restore{.request = RequestId{++last_request_},
                    .session = SessionId{tenant},
                    .leases = {},
                    .deadline = now_ + Nanoseconds(50 + Below(400))};
    for (const LeaseId id : checker_.evicted()) {
      if (checker_.leases().at(id).tenant == TenantId{tenant})
        restore.leases.push_back(id);
    }
    Do(restore);
  }

  void Do(const Event& event) {
    if (!problem_.empty()) return;
    // The checker sees an event as a whole.
    const auto due = engine_.NextDeadline();
    if (due && *due <= now_ && !std::holds_alternative<Tick>(event)) Do(Tick{});
    const Effects effects = engine_.Handle(event, now_);
    for (const Effect& effect : effects) {
      const auto* restored = std::get_if<Restored>(&effect);
      if (restored == nullptr || !restored->in_part) continue;
      ++in_part_;
      model_.FollowInPart(*restored);
    }
    const std::string engine_says = DescribeAnswers(effects);
    const std::string model_says = DescribeAnswers(model_.Handle(event, now_));
    if (!model_.WrongInPart().empty()) {
      problem_ = model_.WrongInPart();
    } else if (engine_says != model_says) {
      problem_ = engine_says + "\nthe reference model says\n" + model_says;
    } else {
      problem_ = checker_.Check(event, now_, effects);
    }
    if (!problem_.empty()) problem_ = Describe(event) + ": " + problem_;
  }

  std::mt19937_64 random_;
  Engine engine_{kOptions};
  ReferenceModel model_{kOptions};
  InvariantChecker checker_{engine_};
  Instant now_;
  uint64_t last_request_ = 0;
  uint64_t in_part_ = 0;
  std::string problem_;
};

TEST(RestoreInPartPropertyTest, NothingIsTakenFromThoseBeforeIt) {
  const uint64_t first = FromEnvironment("GMB_QUOTA_SEED", 1);
  const uint64_t count =
      FromEnvironment("GMB_QUOTA_SEEDS", FewerIfSanitized(40));
  uint64_t in_part = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    InPartRun run(seed);
    for (int step = 0; step < 800 && run.problem().empty(); ++step) run.Step();
    ASSERT_EQ(run.problem(), "")
        << "repeat with GMB_QUOTA_SEED=" << seed << " GMB_QUOTA_SEEDS=1";
    in_part += run.in_part();
  }
  std::cout << in_part << " came back in part\n";
  EXPECT_GT(in_part, count);
}

}  // namespace
}  // namespace gmb::quota
