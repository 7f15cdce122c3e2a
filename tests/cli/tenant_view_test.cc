#include "client/cli/tenant_view.h"

#include <sstream>

#include "absl/time/clock.h"
#include "client/cli/event_view.h"
#include "client/cli/list_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

v1::Tenant TenantOverItsLimit() {
  v1::Tenant tenant;
  tenant.set_name("a");
  tenant.set_socket_dir("/run/gmb/tenants/a");
  v1::TenantPool* const pool = tenant.add_pools();
  pool->mutable_quota()->mutable_guarantee()->set_fraction(0.25);
  pool->mutable_quota()->mutable_limit()->set_bytes(512 * kMiB);
  pool->mutable_view()->set_device("host-0");
  pool->mutable_view()->set_guarantee_bytes(256 * kMiB);
  pool->mutable_view()->set_limit_bytes(512 * kMiB);
  pool->mutable_view()->set_leased_bytes(600 * kMiB);
  pool->mutable_view()->set_over_limit_bytes(88 * kMiB);
  pool->set_waiting(2);
  pool->set_waiting_bytes(64 * kMiB);
  return tenant;
}

TEST(TenantViewTest, AShareIsShownWithWhatItIsNow) {
  std::ostringstream out;
  PrintTenant(TenantOverItsLimit(), Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("25% = 256.00 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("88.00 MiB over its limit"));
  EXPECT_THAT(out.str(), HasSubstr("2 for 64.00 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("sockets in /run/gmb/tenants/a"));
}

TEST(TenantViewTest, WithoutTenantsTheListSaysHowToMakeOne) {
  std::ostringstream out;
  PrintTenants(v1::ListTenantsResponse(), Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("gmb tenant set"));
}

TEST(TenantViewTest, APendingChangeSaysWhatIsStillToCome) {
  v1::Change change;
  change.set_device("host-0");
  change.set_state(v1::Change::PENDING);
  change.set_remaining_bytes(88 * kMiB);
  std::ostringstream out;
  PrintChange(change, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("host-0: pending, 88.00 MiB still to come"));
}

TEST(TenantViewTest, AnExplanationNamesWhatBlocksAndByHowMuch) {
  v1::ExplainResponse explanation;
  *explanation.mutable_tenant() = TenantOverItsLimit();
  v1::WaitingRequest* const request = explanation.add_waiting();
  request->set_session_id(7);
  request->set_bytes(64 * kMiB);
  request->set_blocked_by(v1::POOL_EXHAUSTED);
  request->set_deficit_bytes(32 * kMiB);
  explanation.add_findings("others hold it");
  std::ostringstream out;
  PrintExplanation(explanation, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("POOL_EXHAUSTED  32.00 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("- others hold it"));
}

TEST(ListViewTest, APeerOfAnotherPidNamespaceHasNoPid) {
  v1::ListSessionsResponse sessions;
  v1::SessionInfo* const session = sessions.add_sessions();
  session->set_id(1);
  session->set_tenant("a");
  session->set_program("server\x1b[31m");
  std::ostringstream out;
  PrintSessions(sessions, absl::Now(), Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("server?[31m    -    0"));
}

TEST(ListViewTest, EmptyListsAreSentences) {
  std::ostringstream out;
  PrintSessions({}, absl::Now(), Terminal(), out);
  PrintLeases({}, absl::Now(), Terminal(), out);
  PrintAudit({}, Terminal(), out);
  EXPECT_EQ(out.str(), "no sessions\nno leases\nno changes by operators yet\n");
}

TEST(EventViewTest, AnEventIsOneLineAndSaysWhatWasMissed) {
  v1::Event event;
  event.set_kind("lease_granted");
  event.set_tenant("a");
  event.set_lease_id(7);
  event.set_bytes(2 * kMiB);
  event.set_message("two\nlines");
  event.set_missed(3);
  std::ostringstream out;
  PrintEvent(event, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("3 events missed here\n"));
  EXPECT_THAT(
      out.str(),
      HasSubstr(
          "lease_granted       tenant=a  lease=7  2.00 MiB  two?lines\n"));
}

}  // namespace
}  // namespace gmb::cli
