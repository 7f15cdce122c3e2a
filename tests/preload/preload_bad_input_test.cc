// Programs that nobody would write, and things that happen to others: each keeps
// its memory or lends it, and never finds it away.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class PreloadBadInputTest : public PreloadGateTest {
 protected:
  inline static const std::string kAlloc = absl::StrCat("alloc x ", kBytes);
  inline static const std::string kPut = absl::StrCat("put x ", kBytes, " 3");
  inline static const std::string kGet = absl::StrCat("get x ", kBytes);
  inline static const std::string kRight = absl::StrCat("get x 0 ", 3 * kBytes);

  // It has memory, and does `steps` then.
  [[nodiscard]] std::unique_ptr<Program> Holder(const Words& steps,
                                                const Words& environment = {}) {
    ProgramRun run{.steps = {kAlloc, kPut}, .run_options = Soon()};
    run.steps.insert(run.steps.end(), steps.begin(), steps.end());
    run.environment = environment;
    auto program = Start("program", run);
    EXPECT_TRUE(program->AwaitOut("put x 0")) << program->Err();
    return program;
  }
  void AwaitNeverParks(const std::string& why) {
    std::string list;
    EXPECT_TRUE(component::Await([&] {
      list = Gmb({"session", "list"}).out;
      return list.find("never parks: " + why) != std::string::npos;
    })) << list;
  }
};

TEST_F(PreloadBadInputTest, WorkThatNobodyWaitsForIsSeenToBeDone) {
  const auto program =
      Holder({"work x 0", Await("done"), "gpu-done", Await("end"), "get x 8"});
  ASSERT_TRUE(program->AwaitOut("work x 0")) << program->Err();
  ExpectNothingToTake();
  Touch("done");
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr("get x 0 7"));
}

// It has left the call, so that the others are lent as before; where it was
// killed without a word, nobody knows, and the call never ends.
TEST_F(PreloadBadInputTest, AThreadThatEndsInsideOfACallLeavesIt) {
  const auto program = Holder({"end-in-copy x exit", Await("kill"), kGet,
                               "end-in-copy x kill", Await("end"), kGet});
  ASSERT_TRUE(program->AwaitOut("end-in-copy x 1")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  Touch("kill");
  ASSERT_TRUE(program->AwaitOut(kRight + "\nend-in-copy x 1"))
      << program->Err();
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_ACTIVE);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight + "\nend\n"));
}

// A thread that waits for its memory, or for the broker, ends when it is
// through: it holds locks there.
TEST_F(PreloadBadInputTest, AThreadThatIsCancelledWhileItWaitsEndsAfterIt) {
  const auto program =
      Holder({Await("copy"), "cancel-copy x " + Directory() + "/cancel", kGet});
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  Touch("copy");
  EXPECT_TRUE(component::Await([&] { return Waiting() == 1; }));
  Touch("cancel");
  ASSERT_TRUE(program->AwaitOut("cancelled\n")) << program->Err();
  Touch("other-ends");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("copied 0\ncancel-copy x 1\nget x 0 ",
                                     3 * (kBytes - 8), "\nend")));
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

TEST_F(PreloadBadInputTest, AForkInsideOfACallIsTheParentsCallAlone) {
  const auto program = Holder({"fork-in-copy x", Await("end"), kGet});
  ASSERT_TRUE(program->AwaitOut("child says 3\nfork-in-copy x 0"))
      << program->Out() << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("get x 0 ", 3 * (kBytes - 8), "\nend")));
}

TEST_F(PreloadBadInputTest, AProgramUnderADebuggerLendsNothingMore) {
  const auto program = Holder({Await("end"), kGet});
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  if (ptrace(PTRACE_SEIZE, program->pid(), nullptr, nullptr) != 0)
    GTEST_SKIP() << "this machine lets nobody trace another process";
  ExpectNothingToTake();
  AwaitNeverParks("a debugger is attached");
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, program->pid(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(program->pid(), &status, __WALL), program->pid());
  ASSERT_EQ(ptrace(PTRACE_DETACH, program->pid(), nullptr, nullptr), 0);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

TEST_F(PreloadBadInputTest, WithAnOlderDriverNothingIsLent) {
  const auto program = Holder({Await("end"), kGet, "free x"},
                              {"LD_LIBRARY_PATH=" FAKE_OLD_DRIVER_DIR});
  AwaitNeverParks("the driver is older than CUDA 12.5");
  ExpectNothingToTake();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight + "\nfree x 0"));
}

TEST_F(PreloadBadInputTest, WhereMembarrierIsRefusedLaterNothingMoreIsLent) {
  const auto program =
      Holder({Await("refuse"), "refuse-membarrier", kPut, Await("end"), kGet});
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("refuse");
  ASSERT_TRUE(program->AwaitOut("refuse-membarrier 1\nput x 0"))
      << program->Out();
  AwaitNeverParks("membarrier is refused");
  ExpectNothingToTake();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

// Nothing of it is taken, since nobody can say that its GPU is quiet; all goes
// back when it ends. (No context comes back from a fault but the fake driver's,
// which shows that the memory is there.)
TEST_F(PreloadBadInputTest, AFaultedContextKeepsItsMemoryUntilTheProgramEnds) {
  constexpr int kIllegalAddress = 700;
  const auto program = Holder(
      {Await("fault"), absl::StrCat("fault ", kIllegalAddress), Await("use"),
       kGet, "fault 0", kGet, absl::StrCat("fault ", kIllegalAddress), "free x",
       "info", Await("end")});
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("fault");
  ASSERT_TRUE(program->AwaitOut("fault 700")) << program->Err();
  ExpectNothingToTake();
  EXPECT_EQ(Evicted(), 0u);
  Touch("use");
  ASSERT_TRUE(program->AwaitOut("info 0")) << program->Out();
  EXPECT_THAT(
      program->Out(),
      HasSubstr(absl::StrCat("get x ", kIllegalAddress, " 0\nfault 0\n", kRight,
                             "\nfault 700\nfree x ", kIllegalAddress)));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  ExpectLeases("a", {});
}

}  // namespace
}  // namespace gmb::component
