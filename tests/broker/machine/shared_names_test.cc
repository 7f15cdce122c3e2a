#include "broker/machine/shared_names.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

constexpr quota::TenantId kTenant{1};
constexpr quota::TenantId kOther{2};

PendingAcquire Request(uint64_t id, const std::string& name) {
  PendingAcquire request;
  request.id = quota::RequestId{id};
  request.session = 7;
  request.share_as = name;
  return request;
}

PendingAttach Waiter(uint64_t session, uint64_t client_id,
                     quota::Instant deadline) {
  PendingAttach attach;
  attach.session = session;
  attach.client_id = client_id;
  attach.deadline = deadline;
  return attach;
}

quota::Instant At(int64_t seconds) {
  return quota::Instant() + std::chrono::seconds(seconds);
}

TEST(SharedNamesTest, ANameIsItsTenantsAndOfItsAcquireAlone) {
  SharedNames names;
  names.Take(kTenant, Request(1, "x"));
  const SharedName* name = names.Find(kTenant, "x");
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(name->writer, 7u);
  EXPECT_EQ(names.Find(kOther, "x"), nullptr);
  EXPECT_EQ(names.Of(kTenant, Request(1, "x")), name);
  EXPECT_EQ(names.Of(kTenant, Request(2, "x")), nullptr);
  names.Take(kOther, Request(3, "y"));
  EXPECT_EQ(names.OfTenant(kTenant), std::vector{name});
  v1::Acquire acquire;
  acquire.set_share_as("x");
  EXPECT_FALSE(names.Check(kTenant, acquire).ok());
  EXPECT_TRUE(names.Check(kOther, acquire).ok());
  names.End(*name);
  EXPECT_TRUE(names.Check(kTenant, acquire).ok());
}

TEST(SharedNamesTest, WhoWaitsIsKnownByNameBySessionAndByDeadline) {
  SharedNames names;
  names.Take(kTenant, Request(1, "x"));
  const SharedName& name = *names.Find(kTenant, "x");
  EXPECT_EQ(names.due(), quota::Instant::Max());
  names.Wait(name, Waiter(5, 1, At(9)));
  names.Wait(name, Waiter(6, 1, At(3)));
  names.Wait(name, Waiter(5, 2, At(6)));
  EXPECT_EQ(names.due(), At(3));
  EXPECT_EQ(names.First(), std::pair(uint64_t{6}, uint64_t{1}));
  EXPECT_EQ(names.RequestsOf(5), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(names.WaitedFor(5, 2), &name);
  EXPECT_EQ(names.WaitedFor(6, 2), nullptr);
  names.StopWaiting(6, 1);
  EXPECT_EQ(names.due(), At(6));
  names.CountAttempt(name);
  const auto stopped = names.StopWaiting(
      name, [](const PendingAttach& attach) { return attach.client_id == 1; });
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_EQ(stopped[0].deadline, At(9));
  EXPECT_EQ(name.attempts, 0u);
  names.ForgetSession(5);
  EXPECT_TRUE(name.waiting.empty());
  EXPECT_EQ(names.due(), quota::Instant::Max());
}

// After any steps in any order, each stands in all three places or none.
TEST(SharedNamesTest, AtRandomNobodyIsForgottenOrLeftBehind) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  SharedNames names;
  uint64_t next = 1;
  for (int step = 0; step < 5000; ++step) {
    const std::string text(1, static_cast<char>('a' + random() % 3));
    const SharedName* name = names.Find(kTenant, text);
    const uint64_t session = 1 + random() % 4;
    switch (random() % 6) {
      case 0:
        if (name == nullptr) names.Take(kTenant, Request(next++, text));
        break;
      case 1:
        if (name != nullptr && random() % 8 == 0) names.End(*name);
        break;
      case 2:
        names.StopWaiting(session, 1 + random() % next);
        break;
      case 3:
        if (random() % 8 == 0) names.ForgetSession(session);
        break;
      default:
        if (name == nullptr) break;
        names.Wait(*name, Waiter(session, next++,
                                 At(static_cast<int64_t>(random() % 9))));
    }
    size_t by_name = 0;
    quota::Instant first = quota::Instant::Max();
    for (const SharedName* shown : names.OfTenant(kTenant)) {
      by_name += shown->waiting.size();
      for (const auto& [arrival, attach] : shown->waiting) {
        first = std::min(first, attach.deadline);
        ASSERT_EQ(names.WaitedFor(attach.session, attach.client_id), shown);
      }
    }
    size_t by_session = 0;
    for (uint64_t id = 1; id <= 4; ++id) by_session += names.WaitingOf(id);
    ASSERT_EQ(by_session, by_name) << "step " << step;
    ASSERT_EQ(names.due(), first) << "step " << step;
  }
}

}  // namespace
}  // namespace gmb::broker
