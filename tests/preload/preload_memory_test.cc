#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kInvalid = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotInitialized = 3;

TEST_F(PreloadTest, SmallBlocksShareALeaseAndTheLastLeavesOneBehind) {
  const auto program = Start(
      "program",
      {.steps = {"alloc x 1000", "alloc y 1", "alloc z 600000", "write x 1000",
                 "write y 1", "write z 600000", Await("look"), "free x",
                 "free z", "free y", "alloc x 1000", "free x", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("write z 0")) << program->Err();
  ExpectLeases("a", {2 * kMiB});
  Touch("look");
  ASSERT_TRUE(program->AwaitOut("free y 0\nalloc x 0\nfree x 0"));
  ExpectLeases("a", {2 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
  ExpectLeases("a", {});
}

TEST_F(PreloadTest, AProgramThatEndsWithMemoryGivesItBack) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 100 * kMiB), "alloc y 100"}}),
      Contains("end"));
  ExpectLeases("a", {});
}

TEST_F(PreloadTest, ForeignAndFreedPointersAreInvalidAndHarmNothing) {
  EXPECT_THAT(Run({.steps = {absl::StrCat("alloc x ", 4 * kMiB), "alloc s 4096",
                             "alloc t 4096", "free-at x 512", "free-at s 512",
                             "free-at nobody 12345678", "free x", "free x",
                             "free s", "free s", "write t 4096", "free t"}}),
              ElementsAre("alloc x 0", "alloc s 0", "alloc t 0",
                          absl::StrCat("free-at x ", kInvalid),
                          absl::StrCat("free-at s ", kInvalid),
                          absl::StrCat("free-at nobody ", kInvalid), "free x 0",
                          absl::StrCat("free x ", kInvalid), "free s 0",
                          absl::StrCat("free s ", kInvalid), "write t 0",
                          "free t 0", "end"));
  ExpectLeases("a", {});
}

TEST_F(PreloadTest, SizesFromNothingToAllThereIs) {
  const Words lines = Run({.steps = {"alloc x 0", "alloc x 1152921504606846976",
                                     "alloc x 18446744073709551615",
                                     "alloc-async x 1152921504606846976 1",
                                     absl::StrCat("alloc x ", kMiB - 1),
                                     absl::StrCat("alloc y ", kMiB),
                                     "write x 1048575", "write y 1048576"},
                           .run_options = {"--wait", "0s"}});
  // The fake driver may say of 0 bytes what it likes, except success.
  EXPECT_THAT(lines[0], ::testing::Not(StartsWith("alloc x 0")));
  EXPECT_THAT(
      Words(lines.begin() + 1, lines.end()),
      ElementsAre(absl::StrCat("alloc x ", kOutOfMemory),
                  absl::StrCat("alloc x ", kOutOfMemory),
                  absl::StrCat("alloc-async x ", kOutOfMemory), "alloc x 0",
                  "alloc y 0", "write x 0", "write y 0", "end"));
}

TEST_F(PreloadTest, RowsArePitchedAndRangesAreThoseOfTheAllocation) {
  EXPECT_THAT(
      Run({.steps = {"pitch p 1000 4096", "range p 5000", "alloc s 3000",
                     "range s 2999", absl::StrCat("alloc x ", 4 * kMiB + 5),
                     "range x 77"}}),
      ElementsAre("pitch p 0 1024", absl::StrCat("range p 0 0 ", 4 * kMiB),
                  "alloc s 0", "range s 0 0 3000", "alloc x 0",
                  absl::StrCat("range x 0 0 ", 4 * kMiB + 5), "end"));
}

TEST_F(PreloadTest, AForkedChildIsToldAndItsParentGoesOn) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 4 * kMiB),
                     absl::StrCat("fork alloc y ", 4 * kMiB), "fork free x",
                     "fork info", "fork alloc-async z 4096 1", "write x 4096",
                     "free x", absl::StrCat("alloc y ", 4 * kMiB)}}),
      ElementsAre("alloc x 0", absl::StrCat("alloc y ", kNotInitialized),
                  "child 0", absl::StrCat("free x ", kNotInitialized),
                  "child 0", absl::StrCat("info ", kNotInitialized, " 0 0"),
                  "child 0", absl::StrCat("alloc-async z ", kNotInitialized),
                  "child 0", "write x 0", "free x 0", "alloc y 0", "end"));
}

TEST_F(PreloadTest, AProgramThatFillsItsBudgetGetsWhatItFrees) {
  Words steps;
  for (int i = 0; i < 8; ++i) {
    steps.push_back(absl::StrCat("alloc x", i, " ", 32 * kMiB));
  }
  steps.insert(steps.end(), {absl::StrCat("alloc more ", 32 * kMiB), "free x3",
                             absl::StrCat("alloc more ", 32 * kMiB)});
  const Words lines = Run({.steps = steps, .run_options = {"--wait", "0s"}});
  ASSERT_EQ(lines.size(), 12U);
  EXPECT_EQ(lines[7], "alloc x7 0");
  EXPECT_EQ(lines[8], "alloc more 2");
  EXPECT_EQ(lines[10], "alloc more 0");
}

TEST_F(PreloadTest, TheRefusalIsExplainedOnStandardErrorAndByWhy) {
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc x ", 100 * kMiB),
                            absl::StrCat("alloc y ", 200 * kMiB), Await("end")},
                  .run_options = {"--wait", "0s"}});
  ASSERT_TRUE(program->AwaitOut("alloc y 2"));
  EXPECT_THAT(program->Err(), HasSubstr("connected as tenant a"));
  EXPECT_THAT(program->Err(), HasSubstr("200.0 MiB refused: "));
  EXPECT_THAT(program->Err(), HasSubstr("limit"));
  EXPECT_THAT(Gmb({"why", "a"}).out, HasSubstr("100.0"));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
