// Programs that know of no gate lend their memory, and get it back.
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

constexpr int kMemoryAway = 802;  // CUDA_ERROR_SYSTEM_NOT_READY

const std::string kPut = absl::StrCat("put x ", 64 * kMiB, " 3");
const std::string kGet = absl::StrCat("get x ", 64 * kMiB);
const std::string kRight = absl::StrCat("get x 0 ", 3 * 64 * kMiB);

class PreloadGateOfTest : public PreloadGateTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(PreloadGateOfTest, AnIdleProgramLendsItsMemoryAndFindsItAsItWas) {
  const auto program =
      Start("program", {.how = GetParam(),
                        .steps = {absl::StrCat("alloc x ", kBytes), kPut,
                                  Await("first"), kGet, Await("second"), kGet},
                        .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  for (const char* const turn : {"first", "second"}) {
    AwaitGate("a", v1::SessionInfo::GATE_PARKED);
    TakeTheDeviceForAWhile(absl::StrCat("before-", turn));
    Touch(turn);
  }
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat(kRight, "\n", kRight, "\nend")));
}

// However the program has found the driver.
INSTANTIATE_TEST_SUITE_P(How, PreloadGateOfTest,
                         ::testing::Values("linked", "dlsym", "proc", "thread"),
                         [](const auto& test) { return test.param; });

// It has given the GPU no work since.
TEST_F(PreloadGateTest, MemoryThatIsOnlyHeldIsLent) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc x ", kBytes), Await("end"), kGet},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("alloc x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other");
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

// It would have to come back first, and might be lost.
TEST_F(PreloadGateTest, WhatIsFreedWhileItIsAwayDoesNotServeAgain) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("free"),
                       "free x", absl::StrCat("alloc x ", kBytes), kPut, kGet,
                       Await("end")},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  const auto lease_id = [&]() -> uint64_t {
    v1::ListLeasesRequest request;
    request.set_tenant("a");
    const auto leases = admin().ListLeases(request);
    return leases.ok() && leases->leases_size() == 1 ? leases->leases(0).id()
                                                     : 0;
  };
  const uint64_t before = lease_id();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other");
  Touch("free");
  ASSERT_TRUE(program->AwaitOut(kRight)) << program->Err() << program->Out();
  EXPECT_GT(lease_id(), before);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

TEST_F(PreloadGateTest, WorkThatIsNotDoneKeepsTheMemory) {
  // Longer than a loaded machine takes from one step to the next.
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut, "work x 0",
                            Await("wait"), "synchronize 0", Await("end")},
                  .run_options = {"--park-after", "2s"}});
  ASSERT_TRUE(program->AwaitOut("work x 0")) << program->Err();
  // It was never seen quiet, so that its gate is off: nothing of it is lent,
  // and who asks is refused at once.
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  Touch("wait");
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

class PreloadPinningTest : public PreloadGateTest {
 protected:
  // Parked; on "go" it locks pages until "locked", on "end" it reads.
  std::unique_ptr<Program> StartParked() {
    auto program =
        Start("program",
              {.steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("go"),
                         "pin " + Directory() + "/locked", Await("end"), kGet},
               .run_options = Soon()});
    EXPECT_TRUE(program->AwaitOut("put x 0")) << program->Err();
    AwaitGate("a", v1::SessionInfo::GATE_PARKED);
    return program;
  }
  void ExpectItReads(Program* program) {
    Touch("end");
    EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
    EXPECT_THAT(program->Out(), HasSubstr(kRight));
  }
};

// The driver would have the unmap wait for it, longer than the broker does.
TEST_F(PreloadPinningTest, ProgramThatLocksPagesIsNotParked) {
  const auto program = StartParked();
  Touch("go");
  ASSERT_TRUE(program->AwaitOut("pinning")) << program->Err();
  ExpectNothingToTake();
  Touch("locked");
  ASSERT_TRUE(program->AwaitOut("pin 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other");
  ExpectItReads(program.get());
}

TEST_F(PreloadPinningTest, MemoryThatIsAwayStaysAwayWhilePagesAreLocked) {
  const auto program = StartParked();
  const auto other = TakeTheDevice("other");
  Touch("go");
  Touch("locked");
  EXPECT_TRUE(program->AwaitOut("pin 0")) << program->Err();
  EXPECT_EQ(Evicted(), kBytes);
  EXPECT_EQ(Waiting(), 0);
  Touch("other");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  ExpectItReads(program.get());
}

TEST_F(PreloadPinningTest, MemoryIsTakenBetweenLockings) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc x ", kBytes), kPut,
                 "pin-often " + Directory() + "/enough", Await("end"), kGet},
       .run_options = {"--park-after", "200ms"}});
  ASSERT_TRUE(program->AwaitOut("pinned 5")) << program->Err();
  const auto other = TakeTheDevice("other");
  Touch("enough");
  Touch("other");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  ExpectItReads(program.get());
}

// The memory that it holds is soft by then, and others' guarantees may rest on
// it: it is asked to park and cannot, goes on, and parks when its work is done.
TEST_F(PreloadGateTest, AGuaranteeWaitsForWorkThatIsNotDone) {
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut,
                            Await("work"), "work x 0", Await("more"), kPut,
                            Await("done"), "synchronize 0", Await("end"), kGet},
                  .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  MakeTenant("b", 480 * kMiB);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--pause-grace", "1m"}).exit_code, 0);
  Touch("work");
  ASSERT_TRUE(program->AwaitOut("work x 0")) << program->Err();
  const auto owner =
      Start("owner", {.steps = {absl::StrCat("alloc y ", kTakeBytes),
                                PreloadTest::Await("owner-ends")},
                      .run_options = {"--wait", "50s"},
                      .tenant = "b"});
  AwaitGate("a", v1::SessionInfo::GATE_PAUSING);
  // It is let in again when the pause has had its 100 ms.
  Touch("more");
  ASSERT_TRUE(program->AwaitOut("work x 0\nput x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PAUSING);  // still
  EXPECT_EQ(owner->Out(), "");
  Touch("done");
  EXPECT_TRUE(owner->AwaitOut("alloc y 0")) << owner->Err();
  EXPECT_EQ(Evicted(), kBytes);
  Touch("owner-ends");
  EXPECT_EQ(owner->AwaitExit(), 0) << owner->Err();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

// The fake driver aborts where the driver would destroy the capture.
TEST_F(PreloadGateTest, ACaptureKeepsTheMemoryAndIsLeftAlone) {
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut, "work x 0",
                            Await("capture"), "begin-capture 1", Await("wait"),
                            "end-capture 1", "synchronize 0", Await("end")},
                  .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("work x 0")) << program->Err();
  // The GPU is asked again and again whether that is done.
  ExpectNothingToTake("before");
  Touch("capture");
  ASSERT_TRUE(program->AwaitOut("begin-capture 1 0")) << program->Err();
  ExpectNothingToTake();
  Touch("wait");
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

// A captured call may not meet memory that is away.
TEST_F(PreloadGateTest, ACaptureBeginsOnceTheMemoryIsBack) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("capture"),
                       "begin-capture 1", "end-capture 1", kGet},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  Touch("capture");
  EXPECT_TRUE(component::Await([&] { return Waiting() == 1; }));
  EXPECT_THAT(program->Out(), ::testing::Not(HasSubstr("capture")));
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr("end-capture 1 0\n" + kRight));
}

TEST_F(PreloadGateTest, ContextsThatEndAreNotWaitedFor) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc x ", kBytes), kPut, "new-context",
                       Await("destroy"), "destroy-context", Await("end"), kGet},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("new-context")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("destroy");
  ASSERT_TRUE(program->AwaitOut("destroy-context")) << program->Err();
  TakeTheDeviceForAWhile("other-ends");
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

// Nobody has to be woken for that.
TEST_F(PreloadGateTest, MemoryThatIsAwayEndsWithItsContext) {
  const auto program =
      Start("program",
            {.steps = {"new-context", absl::StrCat("alloc x ", kBytes), kPut,
                       Await("destroy"), "destroy-context", Await("end")},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  Touch("destroy");
  ASSERT_TRUE(program->AwaitOut("destroy-context  0")) << program->Err();
  EXPECT_TRUE(component::Await([&] { return Evicted() == 0; }));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

TEST_F(PreloadGateTest, TheCommandSaysThatTheProgramLends) {
  const auto program = Start("program", {.steps = {}, .run_options = Soon()});
  EXPECT_EQ(program->AwaitExit(), 0);
  EXPECT_THAT(program->Err(), HasSubstr("; lends it while it is idle for 20"));
}

TEST_F(PreloadGateTest, TheCommandSaysWhatItsEnvironmentSays) {
  const auto terms = [&](Words run_options) {
    const auto program =
        Start("program", {.steps = {}, .run_options = std::move(run_options)});
    EXPECT_EQ(program->AwaitExit(), 0);
    return program->Err();
  };
  setenv("GMB_RUN_PARK", "off", 1);
  EXPECT_THAT(terms({}), HasSubstr("; lends nothing (GMB_RUN_PARK=off)"));
  EXPECT_THAT(terms({"--park=auto"}),
              HasSubstr("; lends it while it is idle for 1"));
  unsetenv("GMB_RUN_PARK");
  setenv("GMB_RUN_PARK_AFTER", "7s", 1);
  EXPECT_THAT(terms({}),
              HasSubstr("; lends it while it is idle (GMB_RUN_PARK_AFTER=7s)"));
  unsetenv("GMB_RUN_PARK_AFTER");
}

TEST_F(PreloadGateTest, WithoutParkingNothingIsLent) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("end"), kGet},
       .run_options = {"--no-park"}});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  ExpectNothingToTake();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

// The broker dies with the memory in its hands: what is away stays away, and
// nothing touches it; the program is told, and ends by itself.
TEST_F(PreloadGateTest, WithoutABrokerMemoryThatIsAwayIsNotTouched) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("end"), kGet},
       .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  KillBroker();
  Touch("end");
  Touch("other-ends");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("get x ", kMemoryAway, " 0\nend")));
}

TEST_F(PreloadGateTest, WithoutABrokerMemoryThatIsThereIsUsedOn) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut,
                                  Await("end"), kGet, kPut, kGet},
                        .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  KillBroker();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat(kRight, "\nput x 0\n", kRight, "\nend")));
}

// Its ranks of both would spin, and nobody knows them all.
TEST_F(PreloadGateTest, ARankOfTwoCommunicatorsNeverLendsAndSaysWhy) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut,
                                  "ranks 1", Await("two"), "ranks 2 7",
                                  "ranks 2 7", "ranks 2 8", Await("end"), kGet},
                        .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("communicator 1 42 0\nranks 1 0"))
      << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("two");
  ASSERT_TRUE(
      program->AwaitOut("communicator 2 7 0\nranks 2 0\n"
                        "communicator 2 7 0\nranks 2 0\n"
                        "communicator 2 8 0\nranks 2 0"))
      << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  constexpr char kWhy[] =
      "never parks: it is one of several ranks of more than one communicator";
  EXPECT_TRUE(component::Await([&] {
    return Gmb({"session", "list"}).out.find(kWhy) != std::string::npos;
  }));
  ExpectNothingToTake();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Err(), HasSubstr("it is one of several ranks"));
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

TEST_F(PreloadGateTest, AProgramWithAToolInTheDriverNeverLends) {
  ProgramRun run{
      .steps = {absl::StrCat("alloc x ", kBytes), kPut, Await("end")},
      .run_options = Soon()};
  run.environment = {"CUDA_INJECTION64_PATH=/a/profiler.so"};
  const auto program = Start("program", run);
  EXPECT_TRUE(component::Await([&] {
    return Gmb({"session", "list"}).out.find("never parks: a tool is in") !=
           std::string::npos;
  })) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

// Whether the system refuses membarrier.
class PreloadAskTest : public PreloadGateTest,
                       public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Membarrier, PreloadAskTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Refused" : "Granted";
                         });

// Questions and frees: nobody's gigabytes come back for those.
TEST_P(PreloadAskTest, AskingAndGivingBackWakeNobody) {
  // Of device memory, at that address, and in the program's first context.
  const std::string ask = "ask x 0 0 2 1\nof x 0 primary none 0";
  const auto program = Start(
      "program", {.steps = {GetParam() ? "refuse-membarrier" : "info",
                            absl::StrCat("alloc x ", kBytes), kPut, "ask x",
                            "of x", Await("ask"), "ask x", "of x",
                            Await("free"), "free x", Await("end")},
                  .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut(ask)) << program->Out() << program->Err();
  if (GetParam()) {
    EXPECT_THAT(program->Out(), HasSubstr("refuse-membarrier 1\n"));
  }
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  Touch("ask");
  ASSERT_TRUE(program->AwaitOut(ask + "\n" + ask)) << program->Out();
  AwaitGate("a", v1::SessionInfo::GATE_CLOSED);
  EXPECT_EQ(Evicted(), kBytes);
  Touch("free");
  ASSERT_TRUE(program->AwaitOut("free x 0")) << program->Err();
  ExpectLeases("a", {});
  ExpectLeases("b", {480 * kMiB});
  EXPECT_THAT(broker().Log(), ::testing::Not(HasSubstr(" restored ")));
  for (const char* const file : {"end", "other-ends"}) Touch(file);
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

// Nobody enters a gate in a child, and its parent's goes on.
TEST_F(PreloadGateTest, AForkLeavesTheParentsGateAlone) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", kBytes), kPut,
                                  "fork info", Await("end"), kGet},
                        .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(kRight));
}

}  // namespace
}  // namespace gmb::component
