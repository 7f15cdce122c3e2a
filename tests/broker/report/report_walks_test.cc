// Pages while the broker works, and tokens that are none.
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/error_status.h"
#include "tests/broker/report/large_machine.h"
#include "tests/broker/report/walk.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kWalkGranule = LargeMachine::kGranule;

class ReportWalksTest : public testing::Test {
 protected:
  ReportWalksTest() : machine(4'000 * kWalkGranule), walk(&machine) {
    machine.SetTenant("a");
    machine.SetTenant("b");
  }

  [[nodiscard]] std::set<uint64_t> LeaseIds() const {
    std::set<uint64_t> ids;
    for (const auto& [id, lease] : *machine.state().leases)
      ids.insert(id.value);
    return ids;
  }
  template <typename Request>
  void ExpectRefused(const absl::Status& status, const char* field,
                     const Request& request) {
    const v1::Error error = proto::ToWireError(status);
    EXPECT_EQ(error.detail().reason(), v1::BAD_REQUEST)
        << request.ShortDebugString();
    EXPECT_EQ(error.detail().field(), field) << status;
  }

  LargeMachine machine;
  Walk walk;
};

TEST_F(ReportWalksTest, NoLeaseIsThereTwiceAndNoneThatStaysIsMissing) {
  for (const uint32_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::vector<uint64_t> sessions;
    for (int i = 0; i < 20; ++i)
      sessions.push_back(machine.Connect(i % 2 == 0 ? "a" : "b"));
    const auto any_session = [&] {
      return sessions[random() % sessions.size()];
    };
    for (int i = 0; i < 2'000; ++i) machine.Acquire(any_session());
    std::set<uint64_t> stayed = LeaseIds();
    walk.between = [&] {
      for (int i = 0; i < 5; ++i) machine.Acquire(any_session());
      for (int i = 0; i < 5; ++i) {
        const std::set<uint64_t> ids = LeaseIds();
        const auto it = ids.lower_bound(1 + random() % *ids.rbegin());
        const uint64_t session = machine.state().LeaseAt({*it}).request.session;
        machine.Release(session, *it);
        stayed.erase(*it);
      }
    };
    v1::ListLeasesRequest request;
    request.set_page_size(77);
    const auto all = AllPages<v1::ListLeasesResponse>(
        request, [&](const auto& r) { return walk.Leases(r); });
    std::set<uint64_t> listed;
    for (const v1::LeaseInfo& lease : all.leases())
      EXPECT_TRUE(listed.insert(lease.id()).second) << lease.id();
    for (const uint64_t id : stayed) EXPECT_TRUE(listed.contains(id)) << id;
    walk.between = [] {};
    for (const uint64_t session : sessions) machine.Close(session);
  }
}

TEST_F(ReportWalksTest, WhoWaitsIsListedOnceWhileOthersComeAndGo) {
  const uint64_t holder = machine.Connect("b");
  for (int i = 0; i < 4'000; ++i) machine.Acquire(holder);
  const uint64_t waiter = machine.Connect("a");
  std::vector<uint64_t> requests;
  for (int i = 0; i < 1'000; ++i) requests.push_back(machine.Acquire(waiter));
  size_t cancelled = 0;
  walk.between = [&] {
    machine.Acquire(waiter);
    machine.Cancel(waiter, requests[cancelled * 3]);
    ++cancelled;
  };
  v1::ExplainRequest request;
  request.set_tenant("a");
  request.set_page_size(50);
  const auto all = AllPages<v1::ExplainResponse>(
      request, [&](const auto& r) { return walk.Explain(r); });
  // Those that are withdrawn were listed before that.
  EXPECT_GE(all.waiting_size(), 1'000);
  EXPECT_LE(all.waiting_size(), 1'000 + static_cast<int>(cancelled));
  for (int i = 1; i < all.waiting_size(); ++i) {
    EXPECT_LT(all.waiting(i).waited().nanos(),
              all.waiting(i - 1).waited().nanos() + 50'000);
  }
}

TEST_F(ReportWalksTest, ATenantThatIsMadeMeanwhileMovesNoOther) {
  for (int i = 0; i < 300; ++i) machine.SetTenant(absl::StrCat("m", i));
  int made = 0;
  walk.between = [&] { machine.SetTenant(absl::StrCat("a", made++)); };
  v1::ListTenantsRequest request;
  request.set_page_size(10);
  const auto all = AllPages<v1::ListTenantsResponse>(
      request, [&](const auto& r) { return walk.Tenants(r); });
  std::set<std::string> names;
  for (const v1::Tenant& tenant : all.tenants())
    EXPECT_TRUE(names.insert(tenant.name()).second) << tenant.name();
  for (int i = 0; i < 300; ++i)
    EXPECT_TRUE(names.contains(absl::StrCat("m", i)));
}

TEST_F(ReportWalksTest, TheLastPageSaysSoAndAnEmptyListIsOne) {
  v1::ListLeasesRequest request;
  EXPECT_EQ(walk.Leases(request)->next_page_token(), "");
  const uint64_t session = machine.Connect("a");
  for (int i = 0; i < 6; ++i) machine.Acquire(session);
  request.set_page_size(3);
  const auto first = walk.Leases(request);
  ASSERT_THAT(first->leases(), SizeIs(3));
  request.set_page_token(first->next_page_token());
  const auto second = walk.Leases(request);
  ASSERT_THAT(second->leases(), SizeIs(3));
  if (!second->next_page_token().empty()) {
    request.set_page_token(second->next_page_token());
    const auto third = walk.Leases(request);
    EXPECT_THAT(third->leases(), IsEmpty());
    EXPECT_EQ(third->next_page_token(), "");
  }
}

TEST_F(ReportWalksTest, APageHasAtMostAThousandRows) {
  const uint64_t session = machine.Connect("a");
  for (int i = 0; i < 1'001; ++i) machine.Acquire(session);
  v1::ListLeasesRequest request;
  for (const int32_t size : {0, 1'000, 1'001, 2'147'483'647}) {
    request.set_page_size(size);
    EXPECT_THAT(walk.Leases(request)->leases(), SizeIs(1'000)) << size;
  }
  request.set_page_size(-1);
  ExpectRefused(walk.Leases(request).status(), "page_size", request);
}

TEST_F(ReportWalksTest, TokensThatWereNotGivenForTheListAreRefused) {
  const uint64_t session = machine.Connect("a");
  for (int i = 0; i < 10; ++i) machine.Acquire(session);
  machine.Connect("b");
  v1::ListLeasesRequest leases;
  leases.set_page_size(1);
  const std::string good = walk.Leases(leases)->next_page_token();
  v1::ListSessionsRequest sessions;
  sessions.set_page_size(1);
  const std::string of_sessions = walk.Sessions(sessions)->next_page_token();
  const auto made = [](const std::string& text) {
    return absl::WebSafeBase64Escape(text);
  };
  for (const std::string& token :
       {std::string("garbage"), std::string("\xff\xfe\x00", 3), of_sessions,
        good + "A", good.substr(1), made("leases"), made("leases  "),
        made("leases  -1"), made("leases  1.2"),
        made("leases  99999999999999999999"), made("leases a 1"),
        std::string(100'000, 'A')}) {
    leases.set_page_token(token);
    const absl::Status refused = walk.Leases(leases).status();
    ExpectRefused(refused, "page_token", leases);
    EXPECT_THAT(refused.message(), HasSubstr("begin again without it"));
    EXPECT_LT(refused.message().size(), 300U);
  }
  // Of all tenants, and so not of one.
  leases.set_page_token(good);
  leases.set_tenant("a");
  ExpectRefused(walk.Leases(leases).status(), "page_token", leases);
  v1::ExplainRequest why;
  why.set_tenant("a");
  why.set_page_token(made("waiting requests a 1"));
  ExpectRefused(walk.Explain(why).status(), "page_token", why);
}

TEST_F(ReportWalksTest, APageOfATenantThatIsGoneIsRefused) {
  v1::ListLeasesRequest request;
  request.set_tenant("nobody");
  EXPECT_EQ(proto::ToWireError(walk.Leases(request).status()).detail().reason(),
            v1::NO_SUCH_TENANT);
}

}  // namespace
}  // namespace gmb::broker
