#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;

TEST_F(PreloadTest, MemoryFreedOnAStreamServesThatStreamAtOnce) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(Run({.steps = {"alloc-async x " + bytes + " 1", "work x 1",
                             "free-async x 1", "alloc-async y " + bytes + " 1",
                             "same x y"}}),
              ElementsAre("alloc-async x 0", "work x 0", "free-async x 0",
                          "alloc-async y 0", "same 1", "end"));
}

TEST_F(PreloadTest, AnotherStreamGetsItOnceTheWorkIsDone) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(Run({.steps = {"alloc-async x " + bytes + " 1", "work x 1",
                             "free-async x 1", "alloc-async y " + bytes + " 2",
                             "same x y", "synchronize 1",
                             "alloc-async z " + bytes + " 2", "same x z"}}),
              ElementsAre("alloc-async x 0", "work x 0", "free-async x 0",
                          "alloc-async y 0", "same 0", "synchronize 1 0",
                          "alloc-async z 0", "same 1", "end"));
}

TEST_F(PreloadTest, MemoryFreedOnAStreamIsFoundWhenThereIsNoOther) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 200 * kMiB, " 1"),
                     "work x 1", "free-async x 1",
                     absl::StrCat("alloc y ", 220 * kMiB), "free-async x 1"},
           .run_options = {"--wait", "0s"}}),
      ElementsAre("alloc-async x 0", "work x 0", "free-async x 0", "alloc y 0",
                  "free-async x 1", "end"));
}

// Its event is done, so nothing uses it; another stream may be at work for long.
TEST_F(PreloadTest, MemoryFreedOnAStreamGoesBackWithoutAWaitForOthers) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("alloc-async x ", 8 * kMiB, " 1"),
                 absl::StrCat("alloc w ", 4 * kMiB), "free-async x 1",
                 "work w 2", absl::StrCat("churn 1 ", Directory(), "/gone"),
                 "stream 2"}});
  ASSERT_TRUE(program->AwaitOut("work w 0")) << program->Err();
  ExpectLeases("a", {2 * kMiB, 4 * kMiB});
  Touch("gone");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), ::testing::HasSubstr("stream 2 600\n"));
}

// Its chunk stays, for another block is in it: no lease goes back.
TEST_F(PreloadTest, ASmallBlockFreedOnAStreamMakesRoomInItsChunk) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc most ", 254 * kMiB),
                     absl::StrCat("alloc-async x ", 900 << 10, " 1"),
                     absl::StrCat("alloc y ", 900 << 10), "free-async x 1",
                     absl::StrCat("alloc z ", 500 << 10), "same x z"},
           .run_options = {"--wait", "0s"}}),
      ElementsAre("alloc most 0", "alloc-async x 0", "alloc y 0",
                  "free-async x 0", "alloc z 0", "same 1", "end"));
}

TEST_F(PreloadTest, EitherFreeTakesMemoryOfEitherAllocation) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 4 * kMiB, " 1"), "free x",
                     absl::StrCat("alloc y ", 6 * kMiB), "free-async y 2",
                     "free-async y 2", "free y", "alloc-async s 700 1",
                     "free s", "alloc t 700", "free-async t 2"}}),
      ElementsAre("alloc-async x 0", "free x 0", "alloc y 0", "free-async y 0",
                  "free-async y 1", "free y 1", "alloc-async s 0", "free s 0",
                  "alloc t 0", "free-async t 0", "end"));
}

TEST_F(PreloadTest, WhatIsFreedDuringACaptureGoesBackAfterIt) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc x ", 8 * kMiB), "begin-capture 1",
                       "free x", absl::StrCat("alloc y ", 6 * kMiB),
                       Await("look"), "end-capture 1", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("alloc y 0")) << program->Err();
  ExpectLeases("a", {6 * kMiB, 8 * kMiB});
  Touch("look");
  ASSERT_TRUE(program->AwaitOut("end-capture 1 0"));
  ExpectLeases("a", {6 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

TEST_F(PreloadTest, AllocationsOfACaptureAreTheDrivers) {
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc-async before ", 4 * kMiB, " 1"),
                            "begin-capture 1",
                            absl::StrCat("alloc-async x ", 8 * kMiB, " 1"),
                            "free-async x 1", "free-async before 1",
                            absl::StrCat("alloc-async y ", 6 * kMiB, " 2"),
                            Await("end"), "end-capture 1"}});
  ASSERT_TRUE(program->AwaitOut("alloc-async y 0")) << program->Err();
  ExpectLeases("a", {4 * kMiB, 6 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
  EXPECT_EQ(program->Out(),
            "alloc-async before 0\nbegin-capture 1 0\nalloc-async x 0\n"
            "free-async x 0\nfree-async before 900\nalloc-async y 0\n"
            "end-capture 1 0\nend\n");
}

}  // namespace
}  // namespace gmb::component
