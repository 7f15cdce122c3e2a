// Operators ask things of a core that refuses them, over the real service.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/broker/server/admin_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdminAuditTest : public AdminFixture {
 protected:
  absl::Status Drop(const std::string& name) {
    v1::DropLeaseRequest request;
    request.set_tenant("idle");
    request.set_name(name);
    v1::DropLeaseResponse response;
    return Call(&v1::Admin::Stub::DropLease, request, &response);
  }
  absl::Status Reclaim(int to = v1::ReclaimRequest::EVICT) {
    v1::ReclaimRequest request;
    request.set_tenant("idle");
    request.set_to(static_cast<v1::ReclaimRequest::Step>(to));
    v1::ReclaimResponse response;
    return Call(&v1::Admin::Stub::Reclaim, request, &response);
  }
  absl::Status Delete(const std::string& name, int wait_seconds) {
    v1::DeleteTenantRequest request;
    request.set_name(name);
    request.mutable_wait()->set_seconds(wait_seconds);
    v1::DeleteTenantResponse response;
    return Call(&v1::Admin::Stub::DeleteTenant, request, &response);
  }
  absl::Status Make(const std::string& name) {
    v1::SetTenantRequest request;
    request.set_name(name);
    v1::SetTenantResponse response;
    return Call(&v1::Admin::Stub::SetTenant, request, &response);
  }
  // Calls that wait behind one that is being carried out, in this order unless
  // one is slow on its way. Returns the answer to each.
  std::vector<absl::Status> Queue(
      const std::vector<std::function<absl::Status()>>& calls) {
    EXPECT_TRUE(Make("doorstop").ok());
    std::vector<std::future<absl::Status>> answers;
    {
      const base::MutexLock hold(&doorstop_);
      std::vector<std::function<absl::Status()>> all = calls;
      all.insert(all.begin(), [this] { return Delete("doorstop", 0); });
      for (const auto& call : all) {
        answers.push_back(std::async(std::launch::async, call));
        for (int i = 0; i < 20; ++i) {
          v1::GetStatusResponse response;
          (void)Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(),
                     &response);
        }
      }
    }
    std::vector<absl::Status> statuses;
    for (auto& answer : answers) statuses.push_back(answer.get());
    statuses.erase(statuses.begin());
    return statuses;
  }
  // Actions, the newest first.
  std::vector<std::string> Audit() {
    v1::ListAuditResponse list;
    const absl::Status listed =
        Call(&v1::Admin::Stub::ListAudit, v1::ListAuditRequest(), &list);
    EXPECT_TRUE(listed.ok()) << listed;
    std::vector<std::string> actions;
    for (const v1::AuditEntry& entry : list.entries())
      actions.push_back(entry.action());
    return actions;
  }
};

TEST_F(AdminAuditTest, WhatABrokerThatStopsRefusesIsNotListed) {
  const auto writer = Writer(4 * kMiB);
  core.RefuseWaiting();
  for (const absl::Status& refused : {Drop("weights"), Reclaim()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ReasonOf(refused), v1::DRAINING) << refused;
  }
  EXPECT_THAT(Audit(), IsEmpty());
  EXPECT_FALSE(Lease(shared_).dropped());
}

TEST_F(AdminAuditTest, WhatItsTenantDroppedFirstIsRefusedAndNotListed) {
  const auto writer = Writer(4 * kMiB);
  ASSERT_TRUE(CoreSharedTest::Drop(writer.get(), "weights").has_dropped());
  EXPECT_EQ(ReasonOf(Drop("weights")), v1::NO_SUCH_LEASE);
  EXPECT_EQ(ReasonOf(Reclaim(/*to=*/77)), v1::BAD_REQUEST);
  EXPECT_THAT(Audit(), IsEmpty());
}

TEST_F(AdminAuditTest, ATenantThatABrokersStopLeavesStays) {
  const auto idle = Connect("idle");
  std::future<absl::Status> deleted =
      std::async(std::launch::async, [this] { return Delete("idle", 600); });
  (void)idle->Await(
      [](const v1::BrokerMessage& m) { return m.has_draining(); });
  EXPECT_THAT(Audit(), ElementsAre("see_off_tenant"));
  core.RefuseWaiting();
  EXPECT_EQ(ReasonOf(deleted.get()), v1::DRAINING);
  EXPECT_THAT(Audit(), ElementsAre("tenant_stays", "see_off_tenant"));
}

TEST_F(AdminAuditTest, ADeleteThatWaitsIsOfTheTenantThatWasThere) {
  bool came_about = false;
  for (int attempt = 0; attempt < 12 && !came_about; ++attempt) {
    ASSERT_TRUE(Make("idle").ok());
    const size_t before = Audit().size();
    const std::vector<absl::Status> answers =
        Queue({[this] { return Delete("idle", 600); },
               [this] { return Delete("idle", 0); },
               [this] { return Make("idle"); }});
    std::vector<std::string> done = Audit();
    std::reverse(done.begin(), done.end());
    // Of this attempt, and without the doorstop's two.
    done.erase(done.begin(), done.begin() + static_cast<int64_t>(before) + 2);
    came_about = done.size() >= 3 && done[0] == "see_off_tenant" &&
                 done[1] == "delete_tenant" && done[2] == "set_tenant";
    if (!came_about) continue;  // one was slow on its way
    EXPECT_EQ(ReasonOf(answers[0]), v1::NO_SUCH_TENANT) << answers[0];
    EXPECT_EQ(done.size(), 3U) << done.back();
    EXPECT_TRUE(core.GetPolicy("idle").ok()) << "it was made anew";
  }
  EXPECT_TRUE(came_about);
}

TEST_F(AdminAuditTest, WhatIsDoneIsListed) {
  const auto writer = Writer(4 * kMiB);
  EXPECT_TRUE(Drop("weights").ok());
  EXPECT_TRUE(Lease(shared_).dropped());
  EXPECT_TRUE(Reclaim(v1::ReclaimRequest::TRIM).ok());
  EXPECT_THAT(Audit(), ElementsAre("reclaim", "drop_lease"));
}

}  // namespace
}  // namespace gmb::broker
