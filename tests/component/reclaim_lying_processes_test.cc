// Processes that park, and never unmap what is taken from them: what that costs
// somebody with a guarantee (docs/reclaim.md).
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr int kProcesses = 10;
constexpr absl::Duration kUnmapGrace = absl::Seconds(1);
constexpr absl::Duration kKillGrace = absl::Seconds(2);

class LyingProcessesTest : public ComponentTest {
 protected:
  void SetUp() override {
    BrokerOptions options;
    options.flags = {
        "--host-pool=512MiB",
        absl::StrCat("--unmap-grace=", absl::FormatDuration(kUnmapGrace)),
        absl::StrCat("--kill-grace=", absl::FormatDuration(kKillGrace))};
    StartBroker(options);
    MakeTenant("liar");
    MakeTenant("owner", 64 * kMiB);
    v1::SetTenantRequest may;
    may.set_name("liar");
    may.set_may_terminate(true);
    ASSERT_TRUE(SetTenant(may).ok());
    for (int i = 0; i < kProcesses; ++i) {
      liars_.push_back(
          StartGmb(absl::StrCat("liar-", i),
                   {"hold", "--tenant", "liar", "--bytes", "24MiB", "--idle"}));
      ASSERT_TRUE(liars_.back()->AwaitOut("the gate is on"))
          << liars_.back()->Err();
    }
    ASSERT_TRUE(Await([this] { return Parked() == kProcesses; }));
    for (const auto& liar : liars_) liar->Signal(SIGSTOP);
  }
  [[nodiscard]] int Parked() const {
    v1::ListSessionsRequest request;
    request.set_tenant("liar");
    const auto list = admin().ListSessions(request);
    int parked = 0;
    for (const v1::SessionInfo& session : list.value().sessions())
      parked += session.gate() == v1::SessionInfo::GATE_PARKED ? 1 : 0;
    return parked;
  }
  int Logged(const std::string& event) {
    const std::vector<std::string> parts =
        absl::StrSplit(broker().Log(), absl::StrCat(" ", event, " "));
    return static_cast<int>(parts.size()) - 1;
  }

  std::vector<std::unique_ptr<Program>> liars_;
};

// One after the other they would take ten times as long.
TEST_F(LyingProcessesTest, DelayAGuaranteeForAsLongAsAFewOfThem) {
  const auto owner = ConnectAs("owner");
  ASSERT_NE(owner, nullptr);
  const absl::Time asked = absl::Now();
  auto lease = owner->Acquire(32 * kMiB, WaitFor(absl::Seconds(60)));
  ASSERT_TRUE(lease.ok()) << lease.status();
  // Those that are tried before the first one is killed.
  EXPECT_LE(Logged("client_overdue"), 3);
  EXPECT_GE(Logged("terminated"), 1);
  EXPECT_LE(Logged("terminated"), 2);
  if (!kInstrumented) {
    EXPECT_LT(absl::Now() - asked,
              3 * kUnmapGrace + kKillGrace + absl::Seconds(3));
  }
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

}  // namespace
}  // namespace gmb::component
