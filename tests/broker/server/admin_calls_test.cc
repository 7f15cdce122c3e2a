// The operators' thread, without the service.
#include "broker/server/admin_calls.h"

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;

class WallClock final : public Clock {
 public:
  [[nodiscard]] quota::Instant Now() const override { return {}; }
  [[nodiscard]] absl::Time WallTime() const override {
    return absl::FromUnixSeconds(1'000'000);
  }
};

TEST(AdminCallsTest, ARecordSaysWhoAndWhen) {
  const WallClock clock;
  const AdminCalls calls(nullptr, &clock);
  const AuditRecord record = calls.RecordOf({.name = "uid 0, pid 7 (gmb)"});
  EXPECT_EQ(record.operator_name, "uid 0, pid 7 (gmb)");
  EXPECT_EQ(record.at, clock.WallTime());
  EXPECT_EQ(record.action, "");
}

TEST(AdminCallsTest, WorkIsDoneInItsOrderOnOneThreadToTheEnd) {
  const WallClock clock;
  std::optional<AdminCalls> calls(std::in_place, nullptr, &clock);
  std::promise<void> begin;
  std::vector<int> done;
  std::vector<std::thread::id> threads;
  calls->Post([&] { begin.get_future().wait_for(std::chrono::seconds(5)); });
  for (int i = 0; i < 3; ++i) {
    calls->Post([&, i] {
      done.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  begin.set_value();
  calls.reset();  // with work in its queue, perhaps
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
  EXPECT_THAT(threads, ElementsAre(threads[0], threads[0], threads[0]));
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

}  // namespace
}  // namespace gmb::broker
