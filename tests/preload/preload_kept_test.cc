// Memory that a program freed a moment ago serves it again, and others who need
// it.
#include <chrono>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// Not each time: on a machine that is busy a moment may be over.
TEST_F(PreloadTest, WhatWasFreedAMomentAgoServesAgainWithoutTheBroker) {
  constexpr uint64_t kPairs = 100;
  Words steps = {absl::StrCat("alloc x ", 8 * kMiB)};
  for (uint64_t i = 0; i < kPairs; ++i) {
    steps.insert(steps.end(),
                 {"free x", absl::StrCat("alloc x ", 8 * kMiB - i)});
  }
  steps.insert(steps.end(), {"write x 1000", Await("end")});
  const auto program = Start("program", {.steps = steps});
  ASSERT_TRUE(program->AwaitOut("write x 0")) << program->Err();
  v1::ListLeasesRequest request;
  request.set_tenant("a");
  const auto leases = admin().ListLeases(request);
  ASSERT_TRUE(leases.ok()) << leases.status();
  ASSERT_EQ(leases->leases_size(), 1);
  EXPECT_EQ(leases->leases(0).bytes(), 8 * kMiB);
  EXPECT_LT(leases->leases(0).id(), kPairs / 2);  // they are counted
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

TEST_F(PreloadTest, WhatNobodyAsksForAgainGoesBackByItself) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc x ", 8 * kMiB), "free x", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("free x 0")) << program->Err();
  ExpectLeases("a", {});  // while it waits
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

// The limit is 256 MiB, and nothing is waited for.
TEST_F(PreloadTest, WhatIsKeptRefusesNothing) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 200 * kMiB), "free x",
                     absl::StrCat("alloc y ", 250 * kMiB), "free y",
                     absl::StrCat("alloc x ", 100 * kMiB),
                     absl::StrCat("alloc y ", 150 * kMiB), "free x", "free y",
                     absl::StrCat("alloc z ", 256 * kMiB)},
           .run_options = {"--wait", "0s"}}),
      ElementsAre("alloc x 0", "free x 0", "alloc y 0", "free y 0", "alloc x 0",
                  "alloc y 0", "free x 0", "free y 0", "alloc z 0", "end"));
}

// Memory that goes back for a request that was refused does not give it its wait
// anew.
TEST_F(PreloadTest, ARefusalTakesNoLongerThanItsWait) {
  const auto holder =
      Start("holder",
            {.steps = {absl::StrCat("alloc h ", 200 * kMiB), Await("end")}});
  ASSERT_TRUE(holder->AwaitOut("alloc h 0")) << holder->Err();
  for (const std::string ask : {"alloc y", "create y"}) {
    const auto program =
        Start(ask.substr(0, 5),
              {.steps = {absl::StrCat("alloc-async x ", 20 * kMiB, " 1"),
                         "free-async x 1", absl::StrCat(ask, " ", 100 * kMiB)},
               .run_options = {"--wait", "4s"}});
    ASSERT_TRUE(program->AwaitOut("free-async x 0")) << program->Err();
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(program->AwaitOut(ask + " 2")) << program->Out();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(7))
        << ask;
  }
  Touch("end");
  EXPECT_EQ(holder->AwaitExit(), 0) << holder->Err();
}

TEST_F(PreloadTest, WhatIsKeptCountsAsFree) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 200 * kMiB), "free x", "info"}}),
      Contains(absl::StrCat("info 0 ", 256 * kMiB, " ", 256 * kMiB)));
}

// In each way in which room is made for something else, while a kernel is at work
// that may wait for what this thread does next.
TEST_F(PreloadTest, WhatIsKeptMakesRoomWithoutAWaitForTheGpu) {
  for (const std::string& next :
       Words{absl::StrCat("alloc y ", 8 * kMiB), "alloc y 4096",
             absl::StrCat("create y ", 8 * kMiB)}) {
    const Words lines = Run({.steps = {absl::StrCat("alloc w ", 2 * kMiB),
                                       absl::StrCat("alloc x ", 254 * kMiB),
                                       "free x", "work w 1", next, "stream 1"},
                             .run_options = {"--wait", "0s"}});
    EXPECT_THAT(lines, Contains("stream 1 600")) << "CUDA_ERROR_NOT_READY";
    EXPECT_THAT(lines, Contains(::testing::MatchesRegex("(alloc|create) y 0")));
  }
}

TEST_F(PreloadTest, ARefusalWaitsForNoWork) {
  EXPECT_THAT(Run({.steps = {absl::StrCat("alloc w ", 2 * kMiB), "alloc s 4096",
                             "free s", "work w 1",
                             absl::StrCat("alloc y ", 256 * kMiB), "stream 1"},
                   .run_options = {"--wait", "0s"}}),
              ElementsAre("alloc w 0", "alloc s 0", "free s 0", "work w 0",
                          "alloc y 2", "stream 1 600", "end"));
}

TEST_F(PreloadTest, WhatGoesBackByItselfWaitsForNoWork) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc w ", 4 * kMiB),
                                  absl::StrCat("alloc x ", 8 * kMiB), "free x",
                                  "work w 1", Await("look"), "stream 1"}});
  ASSERT_TRUE(program->AwaitOut("work w 0")) << program->Err();
  ExpectLeases("a", {4 * kMiB});
  Touch("look");
  EXPECT_EQ(program->AwaitExit(), 0);
  EXPECT_THAT(program->Out(), ::testing::HasSubstr("stream 1 600\n"));
}

// Twice freed, and used after its free, as natively: an error.
TEST_F(PreloadTest, WhatIsKeptIsNotTheProgramsAnyMore) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 8 * kMiB), "free x", "free x"}}),
      ElementsAre("alloc x 0", "free x 0", "free x 1", "end"));
}

TEST_F(PreloadTest, WithoutRoomForAThreadWhatIsFreedGoesBackAtOnce) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc w ", 4 * kMiB),
                 absl::StrCat("alloc x ", 8 * kMiB), "refuse-threads", "free x",
                 Await("look"), absl::StrCat("alloc y ", 8 * kMiB), "free y"},
       .environment = {"LD_PRELOAD=" PRELOAD_LIBRARY ":" THREAD_REFUSAL}});
  ASSERT_TRUE(program->AwaitOut("free x 0")) << program->Err();
  ExpectLeases("a", {4 * kMiB});
  Touch("look");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), ::testing::HasSubstr("free y 0\n"));
}

// While a capture is under way nothing may synchronise the device.
TEST_F(PreloadTest, ACaptureMayBeginWhileMemoryIsKept) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", 8 * kMiB), "free x",
                                  "begin-capture 1", Await("look"),
                                  "end-capture 1", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("begin-capture 1")) << program->Err();
  ExpectLeases("a", {8 * kMiB});
  Touch("look");
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
