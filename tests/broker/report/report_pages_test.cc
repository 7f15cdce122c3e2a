// Lists of a large broker: all that is there is in some page, once.
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/report/unkillable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/report/large_machine.h"
#include "tests/broker/report/walk.h"
#include "tests/sanitized.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kLeases = kSanitized ? 5'000 : 100'000;
constexpr uint64_t kWaiting = kSanitized ? 2'000 : 40'000;
constexpr uint64_t kGranule = LargeMachine::kGranule;

// Half of the leases are of one session, the others of a hundred.
struct LargeBroker {
  LargeBroker() : machine(kLeases * kGranule) {
    machine.SetTenant("many");
    many = machine.Connect("many");
    for (uint64_t i = 0; i < kLeases / 2; ++i) machine.Acquire(many);
    for (uint64_t i = 0; i < 100; ++i) {
      const std::string name = absl::StrCat("t", i);
      machine.SetTenant(name, /*may_terminate=*/true);
      const uint64_t session = machine.Connect(name);
      for (uint64_t j = 0; j < kLeases / 200; ++j) machine.Acquire(session);
    }
  }

  LargeMachine machine;
  uint64_t many = 0;
};

// All of these tests read one broker.
class LargeReportTest : public testing::Test {
 protected:
  LargeReportTest() : LargeReportTest(&One()) {}
  explicit LargeReportTest(LargeBroker* large)
      : machine(large->machine), walk(&machine), many(large->many) {}

  // CPU time under the lock, for people: a busy machine disturbs it.
  void TellLongestSlice() const {
    const std::vector<double> ms = walk.longest_ms();
    ASSERT_FALSE(ms.empty());
    RecordProperty("longest_slice_us", static_cast<int>(ms.front() * 1000));
    std::cout << ms.size() << " slices, the longest " << ms.front()
              << " ms, the median " << ms[ms.size() / 2] << " ms\n";
  }

  LargeMachine& machine;
  Walk walk;
  const uint64_t many;

  static LargeBroker& One() {
    static LargeBroker& one = *new LargeBroker;
    return one;
  }
};

// These change their copy.
class ChangedReportTest : public LargeReportTest {
 protected:
  ChangedReportTest()
      : ChangedReportTest(std::make_unique<LargeBroker>(One())) {}

 private:
  explicit ChangedReportTest(std::unique_ptr<LargeBroker> own)
      : LargeReportTest(own.get()), own_(std::move(own)) {}

  const std::unique_ptr<LargeBroker> own_;
};

TEST_F(LargeReportTest, EveryLeaseIsInOnePage) {
  size_t pages = 0;
  const auto all = AllPages<v1::ListLeasesResponse>(
      v1::ListLeasesRequest(), [&](const auto& r) { return walk.Leases(r); },
      &pages);
  ASSERT_THAT(all.leases(), SizeIs(kLeases));
  EXPECT_EQ(pages, kLeases / 1000);
  uint64_t last = 0;
  for (const v1::LeaseInfo& lease : all.leases()) {
    ASSERT_GT(lease.id(), last);
    last = lease.id();
  }
  TellLongestSlice();
}

TEST_F(LargeReportTest, OneTenantsLeasesAreFoundAmongAll) {
  v1::ListLeasesRequest request;
  request.set_tenant("t99");
  const auto all = AllPages<v1::ListLeasesResponse>(
      request, [&](const auto& r) { return walk.Leases(r); });
  ASSERT_THAT(all.leases(), SizeIs(kLeases / 200));
  for (const v1::LeaseInfo& lease : all.leases())
    ASSERT_EQ(lease.tenant(), "t99");
  TellLongestSlice();
}

TEST_F(LargeReportTest, ASessionOfManyLeasesIsAddedUpInSlices) {
  const auto all = AllPages<v1::ListSessionsResponse>(
      v1::ListSessionsRequest(),
      [&](const auto& r) { return walk.Sessions(r); });
  ASSERT_THAT(all.sessions(), SizeIs(101));
  EXPECT_EQ(all.sessions(0).leases(), kLeases / 2);
  EXPECT_EQ(all.sessions(0).leased_bytes(), kLeases / 2 * kGranule);
  for (int i = 1; i <= 100; ++i)
    EXPECT_EQ(all.sessions(i).leased_bytes(), kLeases / 200 * kGranule);
  TellLongestSlice();
}

TEST_F(LargeReportTest, EveryTenantIsInOnePage) {
  const auto all = AllPages<v1::ListTenantsResponse>(
      v1::ListTenantsRequest(), [&](const auto& r) { return walk.Tenants(r); });
  ASSERT_THAT(all.tenants(), SizeIs(101));
  std::set<std::string> names;
  for (const v1::Tenant& tenant : all.tenants()) names.insert(tenant.name());
  EXPECT_THAT(names, SizeIs(101));
  TellLongestSlice();
}

TEST_F(ChangedReportTest, ALongQueueIsExplainedPageByPage) {
  for (uint64_t i = 0; i < kWaiting; ++i) machine.Acquire(many);
  v1::ExplainRequest request;
  request.set_tenant("many");
  bool first = true;
  const auto one_page = [&](const v1::ExplainRequest& asked) {
    absl::StatusOr<v1::ExplainResponse> page = walk.Explain(asked);
    if (page.ok()) {
      EXPECT_EQ(page->has_tenant(), first);
      EXPECT_EQ(page->findings().empty(), !first);
      EXPECT_LE(page->findings_size(), 40);
    }
    first = false;
    return page;
  };
  const auto all = AllPages<v1::ExplainResponse>(request, one_page);
  ASSERT_THAT(all.waiting(), SizeIs(kWaiting));
  for (int i = 1; i < all.waiting_size(); ++i) {
    ASSERT_LE(all.waiting(i).waited().nanos(),
              all.waiting(i - 1).waited().nanos());
  }
  EXPECT_THAT(all.findings(),
              testing::Contains(HasSubstr(
                  absl::StrCat(kWaiting - 16, " more requests of its own"))));
  EXPECT_THAT(AllPages<v1::ListTenantsResponse>(
                  v1::ListTenantsRequest(),
                  [&](const auto& r) { return walk.Tenants(r); })
                  .tenants(),
              SizeIs(101));
  TellLongestSlice();
}

// To say why a request waits takes a look at every lease: no slice does that.
TEST_F(ChangedReportTest, WhyLeasesStayIsFoundInSlices) {
  machine.Acquire(many);
  v1::ExplainRequest request;
  request.set_tenant("many");
  request.set_page_size(1);
  const absl::StatusOr<v1::ExplainResponse> page = walk.Explain(request);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_GE(walk.longest_ms().size(), kLeases / report::kLooksASlice);
  EXPECT_THAT(
      page->findings(),
      testing::IsSupersetOf(
          {HasSubstr("have to be taken from others; reclaim finds nothing that "
                     "it may take now"),
           HasSubstr(absl::StrCat(kLeases / 2, " leases of ")),
           HasSubstr("the program does not use the gate")}));
  TellLongestSlice();
}

TEST_F(ChangedReportTest, OfSessionsThatCannotBeKilledATenantIsToldOnce) {
  for (int i = 0; i < 50; ++i) machine.Connect("t7");
  for (int i = 0; i < 30; ++i) {
    const std::string name = absl::StrCat("u", i);
    machine.SetTenant(name, /*may_terminate=*/true);
    machine.Connect(name);
  }
  report::Unkillable unkillable;
  for (report::Page page; page.more;) unkillable.Look(machine.state(), &page);
  v1::DiagnoseResponse response;
  unkillable.AddFindings(&response);
  ASSERT_THAT(response.findings(), SizeIs(101));
  EXPECT_THAT(response.findings(100).message(), HasSubstr("30 more tenants"));
  bool found = false;
  for (const v1::Finding& finding : response.findings()) {
    if (finding.subject() != "t7") continue;
    found = true;
    EXPECT_THAT(finding.message(), HasSubstr("(and 50 more of it) may be"));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace gmb::broker
