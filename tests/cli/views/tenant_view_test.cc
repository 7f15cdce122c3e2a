#include "client/cli/views/tenant_view.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cli/text/text.h"
#include "client/cli/views/event_view.h"
#include "client/cli/views/list_view.h"
#include "client/cli/views/reclaim_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kViewMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

v1::Tenant TenantOverItsLimit() {
  v1::Tenant tenant;
  tenant.set_name("a");
  tenant.set_socket_dir("/run/gmb/tenants/a");
  v1::TenantPool* const pool = tenant.add_pools();
  pool->mutable_quota()->mutable_guarantee()->set_fraction(0.25);
  pool->mutable_quota()->mutable_limit()->set_bytes(512 * kViewMiB);
  pool->mutable_view()->set_device("host-0");
  pool->mutable_view()->set_guarantee_bytes(256 * kViewMiB);
  pool->mutable_view()->set_limit_bytes(512 * kViewMiB);
  pool->mutable_view()->set_leased_bytes(600 * kViewMiB);
  pool->mutable_view()->set_over_limit_bytes(88 * kViewMiB);
  pool->set_waiting(2);
  pool->set_waiting_bytes(64 * kViewMiB);
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

size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    widest = std::max(widest, DisplayWidth(line));
  return widest;
}

v1::Tenant TenantPartlyEvicted() {
  v1::Tenant tenant;
  tenant.set_name("chat");
  tenant.set_may_terminate(true);
  tenant.mutable_min_residency()->set_seconds(30);
  tenant.mutable_pause_grace()->set_nanos(500'000'000);
  tenant.set_host_limit_bytes(64 * kGiB);
  tenant.set_host_reserved_bytes(40 * kGiB);
  tenant.set_host_held_bytes(10 * kGiB);
  v1::TenantPool* const pool = tenant.add_pools();
  pool->mutable_view()->set_device("host-0");
  pool->mutable_view()->set_leased_bytes(50 * kGiB);
  pool->set_resident_bytes(37 * kGiB);
  pool->set_hard_bytes(12 * kGiB);
  pool->set_evicted_bytes(13 * kGiB);
  return tenant;
}

TEST(TenantViewTest, ATenantShowsItsPolicyOfReclaimAndWhereItsBytesAre) {
  std::ostringstream out;
  PrintTenant(TenantPartlyEvicted(), Terminal(), out);
  EXPECT_THAT(out.str(),
              HasSubstr("reclaim: its leases stay 30.0 s at least, a pause "
                        "waits 500 ms, its processes may be terminated\n"
                        "host pool: limit 64.00 GiB, reserved 40.00 GiB, held "
                        "10.00 GiB\n"));
  EXPECT_THAT(out.str(), HasSubstr("device   resident       hard    evicted\n"
                                   "host-0  37.00 GiB  12.00 GiB  13.00 GiB"));
  v1::Tenant tenant = TenantPartlyEvicted();
  tenant.set_may_terminate(false);
  std::ostringstream spared;
  PrintTenant(tenant, Terminal(), spared);
  EXPECT_THAT(spared.str(), HasSubstr("its processes may not be terminated\n"));
}

TEST(TenantViewTest, AListShowsTheSameInTablesOfTheirOwn) {
  v1::ListTenantsResponse tenants;
  *tenants.add_tenants() = TenantPartlyEvicted();
  std::ostringstream out;
  PrintTenants(tenants, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("chat    host-0  37.00 GiB  12.00 GiB"));
  EXPECT_THAT(
      out.str(),
      HasSubstr(
          "tenant  host limit   reserved       held  min residency  pause "
          "grace  may terminate\n"
          "chat     64.00 GiB  40.00 GiB  10.00 GiB         30.0 s       500 "
          "ms  yes\n"));
  EXPECT_LE(WidestLine(out.str()), 100U) << out.str();
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
  change.set_remaining_bytes(88 * kViewMiB);
  std::ostringstream out;
  PrintChange(change, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("host-0: pending, 88.00 MiB still to come"));
}

TEST(TenantViewTest, AnExplanationNamesWhatBlocksAndByHowMuch) {
  v1::ExplainResponse explanation;
  *explanation.mutable_tenant() = TenantOverItsLimit();
  v1::WaitingRequest* const request = explanation.add_waiting();
  request->set_session_id(7);
  request->set_bytes(64 * kViewMiB);
  request->set_blocked_by(v1::POOL_EXHAUSTED);
  request->set_deficit_bytes(32 * kViewMiB);
  explanation.add_findings("others hold it");
  std::ostringstream out;
  PrintExplanation(explanation, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("POOL_EXHAUSTED  32.00 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("- others hold it"));
}

TEST(TenantViewTest, ARequestThatIsPutOffIsBlockedByTheKeeper) {
  v1::ExplainResponse explanation;
  v1::WaitingRequest* const request = explanation.add_waiting();
  request->set_session_id(7);
  request->set_bytes(64 * kViewMiB);
  request->set_blocked_by(v1::POOL_EXHAUSTED);
  request->set_deficit_bytes(64 * kViewMiB);
  request->mutable_asked_again_in()->set_nanos(25000000);
  std::ostringstream out;
  PrintExplanation(explanation, Terminal(), out);
  EXPECT_THAT(out.str(), HasSubstr("silent keeper  64.00 MiB"));
  EXPECT_THAT(out.str(), Not(HasSubstr("POOL_EXHAUSTED")));
}

TEST(TenantViewTest, WhoWaitsToAttachIsShownWithWhatForAndOnWhom) {
  v1::ExplainResponse explanation;
  v1::WaitingAttach* const attach = explanation.add_attaching();
  attach->set_session_id(7);
  attach->set_share_name("llm");
  attach->mutable_waited()->set_seconds(3);
  attach->mutable_remaining()->set_seconds(27);
  attach->set_waits_for(v1::WaitingAttach::SEAL);
  attach->set_on_session_id(5);
  std::ostringstream out;
  PrintExplanation(explanation, Terminal(), out);
  EXPECT_THAT(
      out.str(),
      HasSubstr(
          "attaching session  to   waited  gives up in  waits for              "
          "of session\n"
          "                7  llm   3.0 s       27.0 s  its writer to seal it  "
          "         5\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("waits for nothing")));
  EXPECT_THAT(out.str(), Not(HasSubstr("waiting session")));
  attach->set_waits_for(v1::WaitingAttach::RETURN);
  attach->clear_on_session_id();
  std::ostringstream away;
  PrintExplanation(explanation, Terminal(), away);
  EXPECT_THAT(away.str(), HasSubstr("its return to the device           -\n"));
}

// Of a list that is one page.
Table::Flow* Alone() {
  static Table::Flow flow;
  flow = {};
  return &flow;
}

TEST(ListViewTest, APeerOfAnotherPidNamespaceHasNoPid) {
  v1::ListSessionsResponse sessions;
  v1::SessionInfo* const session = sessions.add_sessions();
  session->set_id(1);
  session->set_tenant("a");
  session->set_program("server\x1b[31m");
  std::ostringstream out;
  PrintSessions(sessions, absl::Now(), Terminal(), out, Alone());
  EXPECT_THAT(out.str(), HasSubstr("server?[31m    -    0"));
}

TEST(ListViewTest, ASessionShowsItsGateAndWhatOfItIsEvictedOrBacked) {
  v1::ListSessionsResponse sessions;
  v1::SessionInfo* const session = sessions.add_sessions();
  session->set_id(7);
  session->set_tenant("chat");
  session->set_program("llm-server");
  session->set_pid(123'456);
  session->set_uid(1000);
  session->set_leased_bytes(30 * kGiB);
  session->set_gate(v1::SessionInfo::GATE_PARKED);
  session->mutable_idle()->set_seconds(95);
  session->set_evicted_bytes(20 * kGiB);
  session->set_backed_bytes(10 * kGiB);
  session->set_waiting(1);
  session->set_streaming(true);
  std::ostringstream out;
  PrintSessions(sessions, absl::Now(), Terminal(), out, Alone());
  EXPECT_THAT(out.str(), HasSubstr("parked 1m 35s  30.00 GiB  20.00 "
                                   "GiB  10.00 GiB  1 waiting\n"));

  session->set_waiting(0);
  std::ostringstream quiet;
  PrintSessions(sessions, absl::Now(), Terminal(), quiet, Alone());
  EXPECT_LE(WidestLine(quiet.str()), 100U) << quiet.str();
}

TEST(ListViewTest, EveryGateHasAWord) {
  for (const auto& [gate, word] : std::map<v1::SessionInfo::Gate, std::string>{
           {v1::SessionInfo::GATE_UNSPECIFIED, "-"},
           {v1::SessionInfo::GATE_OFF, "off"},
           {v1::SessionInfo::GATE_ACTIVE, "active"},
           {v1::SessionInfo::GATE_PAUSING, "pausing"},
           {v1::SessionInfo::GATE_CLOSED, "closed"},
           {static_cast<v1::SessionInfo::Gate>(99), "99"}}) {
    v1::ListSessionsResponse sessions;
    sessions.add_sessions()->set_gate(gate);
    std::ostringstream out;
    PrintSessions(sessions, absl::Now(), Terminal(), out, Alone());
    EXPECT_THAT(out.str(), HasSubstr("  " + word + " ")) << word;
    EXPECT_THAT(out.str(), HasSubstr("no stream"));
  }
}

TEST(ListViewTest, ALeaseShowsItsStateAndWhatKeepsItOrSparesACopy) {
  v1::ListLeasesResponse leases;
  v1::LeaseInfo* const evicted = leases.add_leases();
  evicted->set_state(v1::LeaseInfo::EVICTED);
  evicted->set_backed(true);
  evicted->set_sealed(true);
  v1::LeaseInfo* const hard = leases.add_leases();
  hard->set_state(v1::LeaseInfo::RESTORING);
  hard->set_hard(true);
  std::ostringstream out;
  PrintLeases(leases, absl::Now(), Terminal(), out, Alone());
  EXPECT_THAT(out.str(), HasSubstr("evicted      -  backed, sealed\n"));
  EXPECT_THAT(out.str(), HasSubstr("restoring    -  hard\n"));
  EXPECT_LE(WidestLine(out.str()), 100U);
}

TEST(ReclaimViewTest, AllThatWasAskedForIsOneLine) {
  v1::ReclaimRequest request;
  request.set_tenant("a");
  request.set_bytes(2 * kGiB);
  v1::ReclaimResponse answer;
  answer.set_reclaimed_bytes(3 * kGiB);
  std::ostringstream out;
  PrintReclaimed(request, answer, Terminal(), out);
  EXPECT_EQ(out.str(),
            "reclaimed 3.00 GiB of the 2.00 GiB asked for from tenant a\n");
  request.set_bytes(0);
  std::ostringstream all;
  PrintReclaimed(request, answer, Terminal(), all);
  EXPECT_EQ(all.str(), "reclaimed 3.00 GiB from tenant a\n");
}

TEST(ReclaimViewTest, WhatIsLackingIsSaidWithTheReasons) {
  v1::ReclaimRequest request;
  request.set_tenant("a");
  request.set_bytes(2 * kGiB);
  v1::ReclaimResponse answer;
  answer.set_lacking_bytes(2 * kGiB);
  answer.add_findings("lease 5 (2.00 GiB) is of a session without a gate");
  std::ostringstream out;
  PrintReclaimed(request, answer, Terminal(), out);
  EXPECT_EQ(out.str(),
            "reclaimed 0 B of the 2.00 GiB asked for from tenant a\n"
            "2.00 GiB are lacking\n"
            "why the rest stayed:\n"
            "- lease 5 (2.00 GiB) is of a session without a gate\n");
  answer.clear_findings();
  std::ostringstream silent;
  PrintReclaimed(request, answer, Terminal(), silent);
  EXPECT_THAT(silent.str(),
              HasSubstr("are lacking\nnothing more was to be had in time; `gmb "
                        "lease list --tenant a`"));
}

TEST(ListViewTest, EmptyListsAreSentences) {
  std::ostringstream out;
  PrintSessions({}, absl::Now(), Terminal(), out, Alone());
  PrintLeases({}, absl::Now(), Terminal(), out, Alone());
  PrintAudit({}, Terminal(), out, Alone());
  EXPECT_EQ(out.str(), "no sessions\nno leases\nno changes by operators yet\n");
}

TEST(ListViewTest, PagesAreOneTable) {
  std::ostringstream out;
  Table::Flow flow;
  v1::ListLeasesResponse page;
  page.set_next_page_token("more");
  PrintLeases(page, absl::Now(), Terminal(), out, &flow);
  EXPECT_EQ(out.str(), "") << "there may be rows on the next page";
  page.add_leases()->set_tenant("a-tenant-with-a-long-name");
  PrintLeases(page, absl::Now(), Terminal(), out, &flow);
  page.mutable_leases(0)->set_tenant("b");
  page.clear_next_page_token();
  PrintLeases(page, absl::Now(), Terminal(), out, &flow);
  page.clear_leases();
  PrintLeases(page, absl::Now(), Terminal(), out, &flow);
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  ASSERT_THAT(lines, testing::SizeIs(4)) << out.str();
  EXPECT_THAT(lines[0], HasSubstr("tenant"));
  EXPECT_EQ(lines[1].find("preserve"), lines[2].find("preserve"));
  EXPECT_EQ(lines[3], "");
}

TEST(EventViewTest, AnEventIsOneLineAndSaysWhatWasMissed) {
  v1::Event event;
  event.set_kind("lease_granted");
  event.set_tenant("a");
  event.set_lease_id(7);
  event.set_bytes(2 * kViewMiB);
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
