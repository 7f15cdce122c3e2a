// A broker that is killed, and a keeper that is replaced, at random instants, under processes that acquire,
// work, park, come back, seal and release at random and look at every byte: no
// byte is lost or seen by others, nobody greets again, and the books add up.
//
// GMB_CHURN_SEED repeats a run, GMB_CHURN_KILLS has more deaths, and
// GMB_CHURN_STEPS longer ones.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::IsEmpty;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RestartChurnTest : public RestartFixture {
 protected:
  void StartProcess(const std::string& tenant, uint64_t guarantee_bytes) {
    const uint64_t tag = processes_.size() + 1;
    processes_.push_back(std::make_unique<Program>(
        Directory(), absl::StrCat(tenant, "-", tag),
        std::vector<std::string>{
            RECLAIM_TENANT, TenantDir(tenant), absl::StrCat(tag),
            absl::StrCat(random_()),
            absl::StrCat(FromEnvironment("GMB_CHURN_STEPS", 300)),
            absl::StrCat(guarantee_bytes)}));
  }
  bool AnyRuns() {
    bool any = false;
    for (const auto& process : processes_) any |= process->IsRunning();
    return any;
  }

  // The words of each broker about sessions that ended, or did not go on.
  void NoteEndings() {
    for (const absl::string_view line : absl::StrSplit(broker().Log(), '\n')) {
      const bool is_of_end = absl::StrContains(line, " session_closed ") ||
                             absl::StrContains(line, " session_not_adopted ") ||
                             absl::StrContains(line, " record_set_aside ") ||
                             absl::StrContains(line, " slab_not_imported ");
      if (is_of_end) absl::StrAppend(&endings_, line, "\n");
    }
  }

  std::string endings_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Program>> processes_;
};

TEST_F(RestartChurnTest, NoByteIsLostHoweverOftenTheBrokerDies) {
  const uint64_t seed =
      FromEnvironment("GMB_CHURN_SEED", std::random_device{}());
  std::printf("GMB_CHURN_SEED=%lu\n", seed);
  std::fflush(stdout);
  SCOPED_TRACE(absl::StrCat("GMB_CHURN_SEED=", seed));
  random_.seed(seed);
  StartBroker(Options());
  MakeTenant("a", 24 * kMiB);
  MakeTenant("b", 16 * kMiB);
  MakeTenant("c", 0);
  Footprint before = Settle();
  StartProcess("a", 24 * kMiB);
  StartProcess("b", 16 * kMiB);
  StartProcess("c", 0);
  ASSERT_TRUE(Await([&] { return Status().sessions() == 3; }));
  uint64_t kills = FromEnvironment("GMB_CHURN_KILLS", 6);
  for (; kills > 0 && AnyRuns(); --kills) {
    const auto instant = std::chrono::microseconds(random_() % 600'000);
    (void)Await([&] { return !AnyRuns(); },
                std::chrono::duration_cast<std::chrono::milliseconds>(instant));
    NoteEndings();
    if (random_() % 2 == 0) ReplaceKeeper();
    Restart();
    EXPECT_THAT(LinesOf("session_opened"), IsEmpty());
  }
  std::printf("  %lu deaths were left over\n", kills);
  for (const auto& process : processes_) {
    EXPECT_EQ(process->AwaitExit(), 0)
        << process->Err() << endings_ << broker().Log();
    std::printf("  %s", process->Out().c_str());
  }
  // Those are of the process, and this is another one.
  const Footprint now = Settle();
  before.fds = now.fds;
  before.resident_bytes = now.resident_bytes;
  ExpectBackTo(before);
  EXPECT_EQ(Status().host_pool().reserved_bytes(), 0U);
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gmb::component
