// Acquires that are put off beside a silent keeper are not in the engine's
// queue, and are shown and counted with those that are.
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/report/pool_report.h"
#include "broker/report/report.h"
#include "broker/report/tenant_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class PutOffRequestsTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    client = Connect("a");
    other = Connect("b");
    SimClient* gone = Connect("b");
    Lease(gone, 1);
    Work();
    world.SilenceKeeper(true);
    End(gone);
    while (Parts().float_bytes > 0) Lease(other, 1);
    RunFor(seconds(1));
  }
  // Asks for what is not ready, so often; each is put off.
  void AskInVain(SimClient* who, int times, const std::string& share_as = "") {
    for (int i = 0; i < times; ++i) {
      Ask(who, 1, {.wait = seconds(60), .share_as = share_as});
      RunDevice();
    }
  }
  // All pages of so many rows at most.
  v1::ExplainResponse Why(const std::string& tenant, int rows = 0) {
    v1::ExplainRequest request;
    request.set_page_size(rows);
    v1::ExplainResponse all;
    do {
      report::WhyTheyStay why;
      const auto page = report::FillPage<v1::ExplainResponse>(
          {.list = "waiting requests", .filter = tenant, .numbers = 2}, request,
          [](const v1::ExplainResponse& r) -> auto& { return r.waiting(); },
          [&](report::Page* at, size_t most, v1::ExplainResponse* response) {
            return report::AddExplanation(state(), tenant, world.now(), at,
                                          most, &why, response);
          });
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return all;
      EXPECT_TRUE(rows == 0 || page->waiting_size() <= rows);
      all.MergeFrom(*page);
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return all;
  }
  v1::TenantPool Of(const std::string& tenant) {
    return report::OfTenant(state(), tenant)->pools(0);
  }
  v1::PoolStatus OfPool() {
    return report::OfPool(state(), state().PoolAt(kPool));
  }
  SimClient* client = nullptr;
  SimClient* other = nullptr;
};

TEST_F(PutOffRequestsTest, EachHasARowThatSaysWhenItIsAskedForAgain) {
  AskInVain(client, 1);
  RunFor(seconds(5));
  const v1::ExplainResponse why = Why("a");
  ASSERT_EQ(why.waiting_size(), 1) << why.ShortDebugString();
  const v1::WaitingRequest& row = why.waiting(0);
  EXPECT_EQ(row.bytes(), kGranule);
  EXPECT_EQ(row.device(), "sim-1");
  EXPECT_EQ(row.waited().seconds(), 5);
  EXPECT_EQ(row.remaining().seconds(), 55);
  EXPECT_EQ(row.blocked_by(), v1::POOL_EXHAUSTED);
  ASSERT_TRUE(row.has_asked_again_in());
  EXPECT_LE(row.asked_again_in().seconds(), 1);
  EXPECT_THAT(
      why.findings(),
      Contains(HasSubstr("did not answer: 1 request of its own, of 2.0 MiB;")));
  EXPECT_EQ(Why("b").waiting_size(), 0) << "another's";
}

TEST_F(PutOffRequestsTest, TheyAreCountedWithThoseThatWait) {
  AskInVain(client, 3);
  AskInVain(other, 1);
  EXPECT_EQ(Of("a").waiting(), 3u);
  EXPECT_EQ(Of("a").waiting_bytes(), 3 * kGranule);
  EXPECT_EQ(Of("b").waiting(), 1u);
  EXPECT_EQ(OfPool().waiting(), 4u);
  EXPECT_EQ(OfPool().waiting_bytes(), 4 * kGranule);
  world.SilenceKeeper(false);
  RunFor(seconds(3));
  EXPECT_EQ(OfPool().waiting(), 0u);
  EXPECT_EQ(Of("a").waiting_bytes(), 0u);
  EXPECT_EQ(Why("a").waiting_size(), 0);
  EXPECT_THAT(Why("a").findings(), Not(Contains(HasSubstr("did not answer:"))));
}

// First those in the queue, then those that are put off: each once.
TEST_F(PutOffRequestsTest, PagesHaveEachOnce) {
  AskInVain(client, 7);
  // More than there is: the engine has all but the first of them wait, whose slabs
  // are being made.
  for (int i = 0; i < 4; ++i) Ask(client, 60, {.wait = seconds(60)});
  const v1::ExplainResponse all = Why("a");
  std::vector<bool> put_off;
  for (const v1::WaitingRequest& row : all.waiting())
    put_off.push_back(row.has_asked_again_in());
  EXPECT_EQ(put_off, (std::vector<bool>{false, false, false, true, true, true,
                                        true, true, true, true}));
  EXPECT_EQ(Of("a").waiting(), put_off.size());
  for (const int rows : {1, 2, 3, 11}) {
    const v1::ExplainResponse paged = Why("a", rows);
    ASSERT_EQ(paged.waiting_size(), all.waiting_size()) << rows;
    for (int i = 0; i < all.waiting_size(); ++i) {
      EXPECT_EQ(paged.waiting(i).SerializeAsString(),
                all.waiting(i).SerializeAsString());
    }
  }
}

TEST_F(PutOffRequestsTest, AnAttachThatWaitsForItsMemoryFindsTheRowItIsToldOf) {
  AskInVain(client, 1, "x");
  Attach(Connect("a"), "x", seconds(60));
  const v1::ExplainResponse why = Why("a");
  ASSERT_EQ(why.attaching_size(), 1);
  EXPECT_EQ(why.attaching(0).waits_for(), v1::WaitingAttach::MEMORY);
  ASSERT_EQ(why.waiting_size(), 1);
  EXPECT_EQ(why.waiting(0).session_id(), why.attaching(0).on_session_id());
}

}  // namespace
}  // namespace gmb::broker
