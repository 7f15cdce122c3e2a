// A function of the driver that gmb does not know may be looked up. Its first
// call finds the memory there, and nothing is lent after it.
#include <array>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kAll = 64 * kMiB;
const std::string kPut = absl::StrCat("put x ", kAll, " 3");
const std::string kGet = absl::StrCat("get x ", kAll);
const std::string kLaunch = absl::StrCat("future-launch x ", kAll, " 4");
const std::string kLaunched = absl::StrCat("get x 0 ", 4 * kAll);
constexpr char kWhy[] =
    "never parks: it called cuFutureLaunch, which gmb does not know";

class PreloadTripwireTest : public PreloadGateTest {
 protected:
  // Has x, and does `first`; then, once the file `call` is there, `then`.
  [[nodiscard]] std::unique_ptr<Program> Begin(const Words& first,
                                               const Words& then,
                                               Words options = Soon(),
                                               Words environment = {}) const {
    ProgramRun run{.steps = {absl::StrCat("alloc x ", kBytes), kPut},
                   .run_options = std::move(options),
                   .environment = std::move(environment)};
    run.steps.insert(run.steps.end(), first.begin(), first.end());
    run.steps.push_back(PreloadTest::Await("call"));
    run.steps.insert(run.steps.end(), then.begin(), then.end());
    run.steps.push_back(PreloadTest::Await("end"));
    return Start("program", run);
  }
  // After its lookups it lends as before: its memory is away. Then it calls, and
  // comes on when it has the memory back.
  void CallWithTheMemoryAway(const Program& program) const {
    AwaitGate("a", v1::SessionInfo::GATE_PARKED);
    const std::string before = program.Out();
    const auto other = TakeTheDevice("other-ends");
    Touch("call");
    EXPECT_TRUE(component::Await([&] { return Waiting() >= 1; }));
    EXPECT_EQ(program.Out(), before);
    Touch("other-ends");
    EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  }
  void ExpectThatItNeverLends(const std::string& why) const {
    AwaitGate("a", v1::SessionInfo::GATE_OFF);
    EXPECT_TRUE(component::Await([&] {
      return Gmb({"session", "list"}).out.find(why) != std::string::npos;
    })) << Gmb({"session", "list"}).out;
    EXPECT_THAT(Gmb({"why", "a"}).out, HasSubstr(why));
    ExpectNothingToTake();
  }
  void End(Program& program) const {
    Touch("end");
    EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  }
};

class PreloadTripwireByTest
    : public PreloadTripwireTest,
      public ::testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] static std::string Find(const std::string& name) {
    return absl::StrCat("find ", name, " ", GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, PreloadTripwireByTest,
                         ::testing::Values("dlsym", "proc"),
                         [](const auto& test) { return test.param; });

TEST_P(PreloadTripwireByTest, TheFirstCallHasTheMemoryBackAndEndsTheLending) {
  const auto program =
      Begin({Find("cuFutureLaunch")}, {kLaunch, kGet, kLaunch});
  ASSERT_TRUE(program->AwaitOut("find cuFutureLaunch other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut(absl::StrCat(
      "future-launch x 4242\n", kLaunched, "\nfuture-launch x 4242\n")))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(kWhy);
  End(*program);
  EXPECT_THAT(program->Err(), HasSubstr("it called cuFutureLaunch, which gmb"));
}

TEST_P(PreloadTripwireByTest, WhatIsKnownOrNotThereIsGivenAsItIs) {
  const auto program =
      Begin({Find("cuDeviceGetName"), Find("cuStreamIsCapturing"),
             Find("cuMemAllocManaged"), Find("cuFutureNothing"),
             Find("cuMemcpyFuture")},
            {});
  ASSERT_TRUE(program->AwaitOut("find cuMemcpyFuture none"));
  EXPECT_THAT(program->Out(), HasSubstr("find cuDeviceGetName own\n"
                                        "find cuStreamIsCapturing own\n"
                                        "find cuMemAllocManaged own\n"
                                        "find cuFutureNothing none\n"));
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("call");
  End(*program);
}

TEST_F(PreloadTripwireTest, BothWaysFindTheSame) {
  const auto program = Begin(
      {"find cuFutureLaunch dlsym", "find cuMemsetD8_v9 dlsym",
       "find cuMemsetD8 proc-14", "same-function cuMemsetD8 cuMemsetD8_v9",
       "find cuMemsetD8 proc", "same-function cuMemsetD8 cuMemsetD8_v9",
       "same-function cuFutureLaunch cuMemsetD8_v9", "find cuMemsetD8_v2 dlsym",
       "same-function cuMemsetD8 cuMemsetD8_v2"},
      {});
  Touch("call");
  End(*program);
  EXPECT_THAT(program->Out(),
              HasSubstr("find cuFutureLaunch other\n"
                        "find cuMemsetD8_v9 other\n"
                        "find cuMemsetD8 other\nsame-function 1\n"
                        "find cuMemsetD8 other\nsame-function 0\n"
                        "same-function 0\n"
                        "find cuMemsetD8_v2 other\nsame-function 1\n"));
}

TEST_F(PreloadTripwireTest, ANewerFormOfAGatedFunctionIsNotKnownEither) {
  const auto program =
      Begin({"find cuMemsetD8 proc-14"},
            {absl::StrCat("future-set x ", kAll, " 5 cuMemsetD8"), kGet});
  ASSERT_TRUE(program->AwaitOut("find cuMemsetD8 other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut(
      absl::StrCat("future-set x 0\nget x 0 ", 5 * kAll, "\n")))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(
      "never parks: it called a form of cuMemsetD8 that gmb does not know");
  End(*program);
}

// It takes its arguments in another order.
TEST_F(PreloadTripwireTest, ANewerFormOfAServedFunctionIsNotOurs) {
  const auto program =
      Begin({"find cuMemAlloc proc", "find cuMemAlloc proc-14"},
            {absl::StrCat("future-alloc y ", 2 * kMiB), "free y", kGet});
  ASSERT_TRUE(program->AwaitOut("find cuMemAlloc other\nfind cuMemAlloc other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut(
      absl::StrCat("future-alloc y 0\nfree y 0\n", "get x 0 ", 3 * kAll, "\n")))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(
      "never parks: it called a form of cuMemAlloc that gmb does not know");
  End(*program);
}

TEST_F(PreloadTripwireTest, ThreadsThatCallAtOnceAllHaveTheMemoryBack) {
  const auto program =
      Begin({"find cuFutureLaunch proc"},
            {absl::StrCat("future-launches x ", kAll, " 4"), kGet});
  ASSERT_TRUE(program->AwaitOut("find cuFutureLaunch other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(
      program->AwaitOut(absl::StrCat("future-launches 8\n", kLaunched, "\n")))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(kWhy);
  End(*program);
}

TEST_F(PreloadTripwireTest, EachOfSoManyIsWatchedAndCallsItsOwn) {
  const auto program = Begin({"find-numbers 256"}, {"call-number 255"});
  ASSERT_TRUE(program->AwaitOut("find-numbers 256"))
      << program->Out() << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("call");
  ASSERT_TRUE(program->AwaitOut("call-number 255"))
      << program->Out() << program->Err();
  ExpectThatItNeverLends("never parks: it called cuFutureNumber255, which");
  End(*program);
}

TEST_F(PreloadTripwireTest, MoreThanCanBeWatchedEndTheLendingAtOnce) {
  const auto program = Begin({"find-numbers 300"}, {kGet});
  ASSERT_TRUE(program->AwaitOut("find-numbers 256"))
      << program->Out() << program->Err();
  ExpectThatItNeverLends("never parks: the driver has more functions that gmb");
  Touch("call");
  End(*program);
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("get x 0 ", 3 * kAll)));
}

TEST_F(PreloadTripwireTest, OneThatIsLookedUpByItsVersionIsWatchedToo) {
  const auto program =
      Begin({"find cuFutureLaunch dlvsym", "find cuDeviceGetName dlvsym",
             "find cuFutureNothing dlvsym"},
            {kLaunch}, Soon(), {"LD_LIBRARY_PATH=" FAKE_VERSIONED_DRIVER_DIR});
  ASSERT_TRUE(
      program->AwaitOut("find cuFutureLaunch other\n"
                        "find cuDeviceGetName own\n"
                        "find cuFutureNothing none"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut("future-launch x 4242"))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(kWhy);
  End(*program);
}

// Where the lookup begins only the C library can tell.
TEST_F(PreloadTripwireTest, OneThatIsLookedUpPastUsEndsTheLendingAtOnce) {
  const auto program = Begin({"find cuFutureLaunch next"}, {});
  ASSERT_TRUE(program->AwaitOut("find cuFutureLaunch"));
  ExpectThatItNeverLends(
      "never parks: it looked up a function that gmb does not know, past");
  Touch("call");
  End(*program);
}

TEST_F(PreloadTripwireTest, WhoForcesParkingHasEachCallWaitForTheMemory) {
  Words options = Soon();
  options.push_back("--park=force");
  const auto program =
      Begin({"find cuFutureLaunch proc"},
            {kLaunch, PreloadTest::Await("again"), kLaunch, kGet}, options);
  ASSERT_TRUE(program->AwaitOut("find cuFutureLaunch other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut("future-launch x 4242"))
      << program->Out() << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("second");
  Touch("again");
  End(*program);
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("future-launch x 4242\n", kLaunched)));
}

TEST_F(PreloadTripwireTest, AFirstCallWithoutItsMemoryIsNotMade) {
  const auto program = Begin({"find cuFutureLaunch proc"}, {kLaunch, kLaunch});
  ASSERT_TRUE(program->AwaitOut("find cuFutureLaunch other"))
      << program->Out() << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  KillBroker();
  Touch("call");
  Touch("other-ends");
  End(*program);
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  EXPECT_THAT(program->Out(), HasSubstr("future-launch x 802\n"
                                        "future-launch x 802\n"));
}

class PreloadNewerDriverTest : public PreloadTripwireTest {
 protected:
  [[nodiscard]] std::unique_ptr<Program> BeginOnNewer(const Words& first,
                                                      const Words& then,
                                                      Words options = Soon()) {
    return Begin(first, then, std::move(options), {"FAKE_CUDA_VERSION=14000"});
  }
};

TEST_F(PreloadNewerDriverTest, AProgramOfAKnownCudaIsLent) {
  const auto program = BeginOnNewer({"find cuMemsetD8 proc"}, {kGet});
  ASSERT_TRUE(program->AwaitOut("find cuMemsetD8 other"))
      << program->Out() << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut(absl::StrCat("get x 0 ", 3 * kAll)))
      << program->Out() << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  End(*program);
}

TEST_F(PreloadNewerDriverTest, OneOfANewerCudaHasItsMemoryBackAndIsNotLent) {
  const auto program =
      BeginOnNewer({}, {"find cuInit proc-14", "find cuMemAlloc proc-14"});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  CallWithTheMemoryAway(*program);
  ASSERT_TRUE(program->AwaitOut("find cuInit own\nfind cuMemAlloc other"))
      << program->Out() << program->Err();
  ExpectThatItNeverLends(
      "never parks: it was built for a CUDA that is newer than gmb knows");
  End(*program);
}

TEST_F(PreloadNewerDriverTest, OneOfANewerCudaIsLentByWhoForcesIt) {
  Words options = Soon();
  options.push_back("--park=force");
  const auto program =
      BeginOnNewer({"find cuInit proc-14"}, {kGet}, std::move(options));
  ASSERT_TRUE(program->AwaitOut("find cuInit own")) << program->Err();
  CallWithTheMemoryAway(*program);
  End(*program);
}

TEST_F(PreloadTripwireTest, ALibraryThatIsLinkedToOneIsNamed) {
  const auto program = Begin({}, {absl::StrCat("deepbind ", BOUND_TO_UNKNOWN)});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("call");
  ASSERT_TRUE(program->AwaitOut("deepbind 1")) << program->Out();
  ExpectNothingToTake("looked-at");
  ExpectThatItNeverLends("libgmb_bound_to_unknown.so calls the driver past");
  End(*program);
}

}  // namespace
}  // namespace gmb::component
