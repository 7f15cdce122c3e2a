#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;

// As the program reads it: used and reserved now, and the most of each.
std::string Bytes(const std::string& pool, uint64_t used, uint64_t reserved,
                  uint64_t used_high, uint64_t reserved_high) {
  return absl::StrCat("pool ", pool, " ", used, " ", reserved, " ", used_high,
                      " ", reserved_high);
}

class PreloadPoolsTest : public PreloadTest {
 protected:
  static constexpr uint64_t kChunk = 2 * kMiB;

  static std::string Info(uint64_t free_bytes) {
    return absl::StrCat("info 0 ", free_bytes, " ", 256 * kMiB);
  }
};

// As CuPy's MemoryAsyncPool is tested.
TEST_F(PreloadPoolsTest, APoolSaysWhatIsServedOfIt) {
  EXPECT_THAT(
      Run({.steps = {"pool default", "alloc-async x 1024 default",
                     "pool default", "alloc-async y 2048 default",
                     "pool default", "free-async y default", "pool default",
                     "free-async x default", "pool default",
                     "alloc-async z 512 1", "pool default", "trim default",
                     "pool default"}}),
      ElementsAre(
          Bytes("default", 0, 0, 0, 0), "alloc-async x 0",
          Bytes("default", 1024, kChunk, 1024, kChunk), "alloc-async y 0",
          Bytes("default", 3072, kChunk, 3072, kChunk), "free-async y 0",
          Bytes("default", 1024, kChunk, 3072, kChunk), "free-async x 0",
          Bytes("default", 0, kChunk, 3072, kChunk), "alloc-async z 0",
          Bytes("default", 512, kChunk, 3072, kChunk), "trim default 0",
          Bytes("default", 512, kChunk, 3072, kChunk), "end"));
}

TEST_F(PreloadPoolsTest, AllThatWasFreedGoesWithATrim) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 3 * kMiB, " 1"),
                     "pool default", "free-async x 1", "pool default",
                     "trim default", "pool default"}}),
      ElementsAre(
          "alloc-async x 0",
          Bytes("default", 3 * kMiB, 4 * kMiB, 3 * kMiB, 4 * kMiB),
          "free-async x 0", Bytes("default", 0, 4 * kMiB, 3 * kMiB, 4 * kMiB),
          "trim default 0", Bytes("default", 0, 0, 3 * kMiB, 4 * kMiB), "end"));
}

TEST_F(PreloadPoolsTest, ATrimLeavesSoMuch) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 40 * kMiB, " 1"),
                     absl::StrCat("alloc-async y ", 60 * kMiB, " 1"),
                     "free-async x 1", "free-async y 1",
                     absl::StrCat("trim default ", 61 * kMiB), "pool default",
                     absl::StrCat("trim default ", 60 * kMiB),
                     "pool default"}}),
      ElementsAre("alloc-async x 0", "alloc-async y 0", "free-async x 0",
                  "free-async y 0", "trim default 0",
                  Bytes("default", 0, 100 * kMiB, 100 * kMiB, 100 * kMiB),
                  "trim default 0",
                  Bytes("default", 0, 60 * kMiB, 100 * kMiB, 100 * kMiB),
                  "end"));
}

// A chunk of 2 MiB that is half a MiB full: to give that back would leave nothing.
TEST_F(PreloadPoolsTest, ATrimLeavesAtLeastSoMuchOfSmallBlocks) {
  const std::string held = Bytes("default", 0, kChunk, kMiB / 2, kChunk);
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", kMiB / 2, " 1"),
                     "free-async x 1", absl::StrCat("trim default ", kMiB),
                     "pool default",
                     absl::StrCat("trim default ", kMiB / 2 - 1),
                     "pool default"}}),
      ElementsAre("alloc-async x 0", "free-async x 0", "trim default 0", held,
                  "trim default 0", held, "end"));
}

TEST_F(PreloadPoolsTest, ADefaultPoolThatIsNotDestroyedIsAsBefore) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("threshold default ", 64 * kMiB),
                     "alloc-async x 1024 1", "destroy-pool default",
                     "pool default", "of x", "free-async x 1", "synchronize 1",
                     "pool default"}}),
      ElementsAre(absl::StrCat("threshold default 0 ", 64 * kMiB),
                  "alloc-async x 0", "destroy-pool default 1",
                  Bytes("default", 1024, kChunk, 1024, kChunk),
                  "of x 0 none default 0", "free-async x 0", "synchronize 1 0",
                  Bytes("default", 0, kChunk, 1024, kChunk), "end"));
}

// A kernel may wait for what this thread does next.
TEST_F(PreloadPoolsTest, ATrimWaitsForNoWork) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 40 * kMiB, " 1"),
                     "work x 1", "free-async x 1", "trim default", "stream 1",
                     "pool default"}}),
      ElementsAre("alloc-async x 0", "work x 0", "free-async x 0",
                  "trim default 0", "stream 1 600",
                  Bytes("default", 0, 40 * kMiB, 40 * kMiB, 40 * kMiB), "end"));
}

TEST_F(PreloadPoolsTest, ATrimIsOfOnePool) {
  EXPECT_THAT(
      Run({.steps = {"new-pool p",
                     absl::StrCat("alloc-pool x ", 40 * kMiB, " 1 p"),
                     "free-async x 1", "trim default", "pool p", "trim p",
                     "pool p"}}),
      ElementsAre("new-pool p 0", "alloc-pool x 0", "free-async x 0",
                  "trim default 0",
                  Bytes("p", 0, 40 * kMiB, 40 * kMiB, 40 * kMiB), "trim p 0",
                  Bytes("p", 0, 0, 40 * kMiB, 40 * kMiB), "end"));
}

TEST_F(PreloadPoolsTest, EachPoolHasItsOwnAndPlainMemoryIsOfNone) {
  EXPECT_THAT(
      Run({.steps = {"new-pool p", "alloc-pool x 4096 1 p",
                     absl::StrCat("alloc y ", 8 * kMiB), "pool p",
                     "pool default", "free-async x 1", "alloc-async z 4096 1",
                     "same x z", "pool p", "pool default", "free z",
                     "pool default"}}),
      ElementsAre("new-pool p 0", "alloc-pool x 0", "alloc y 0",
                  Bytes("p", 4096, kChunk, 4096, kChunk),
                  Bytes("default", 0, 0, 0, 0), "free-async x 0",
                  "alloc-async z 0", "same 1", Bytes("p", 0, 0, 4096, kChunk),
                  Bytes("default", 4096, kChunk, 4096, kChunk), "free z 0",
                  Bytes("default", 0, 0, 4096, kChunk), "end"));
}

TEST_F(PreloadPoolsTest, MarksAreResetAndSettingsAreTheDrivers) {
  EXPECT_THAT(
      Run({.steps = {"alloc-async x 512 1", "alloc-async y 512 1",
                     "free-async y 1", "reset-high default 7", "pool default",
                     "reset-high default 0", "pool default",
                     absl::StrCat("threshold default ", 64 * kMiB)}}),
      ElementsAre(
          "alloc-async x 0", "alloc-async y 0", "free-async y 0",
          "reset-high default 1", Bytes("default", 512, kChunk, 1024, kChunk),
          "reset-high default 0", Bytes("default", 512, kChunk, 512, kChunk),
          absl::StrCat("threshold default 0 ", 64 * kMiB), "end"));
}

TEST_F(PreloadPoolsTest, MemoryOfTheDriverInAPoolCountsToo) {
  EXPECT_THAT(
      Run({.steps = {"begin-capture 2",
                     absl::StrCat("alloc-pool x ", 4 * kMiB, " 2 default"),
                     "end-capture 2", "alloc-async y 512 1", "pool default"}}),
      ElementsAre("begin-capture 2 0", "alloc-pool x 0", "end-capture 2 0",
                  "alloc-async y 0",
                  Bytes("default", 4 * kMiB + 512, 4 * kMiB + kChunk,
                        4 * kMiB + 512, 4 * kMiB + kChunk),
                  "end"));
}

// Natively so: a program that adds up what is free and what its pool has in
// reserve counts no byte twice, whichever it asks for first.
TEST_F(PreloadPoolsTest, WhatAPoolHoldsIsReservedUntilAWaitAndFreeAfterIt) {
  const std::string held =
      Bytes("default", 0, 100 * kMiB, 100 * kMiB, 100 * kMiB);
  const std::string given = Bytes("default", 0, 0, 100 * kMiB, 100 * kMiB);
  for (const std::string wait :
       {"synchronize 1", "wait-context ", "wait-event 1"}) {
    for (const bool pool_first : {true, false}) {
      const std::string first = pool_first ? "pool default" : "info";
      const std::string second = pool_first ? "info" : "pool default";
      EXPECT_THAT(
          Run({.steps = {absl::StrCat("alloc-async x ", 100 * kMiB, " 1"),
                         "free-async x 1", "pool default", "info", wait, first,
                         second}}),
          ElementsAre("alloc-async x 0", "free-async x 0", held,
                      Info(156 * kMiB), wait + " 0",
                      pool_first ? given : Info(256 * kMiB),
                      pool_first ? Info(256 * kMiB) : given, "end"))
          << wait;
    }
  }
}

TEST_F(PreloadPoolsTest, APoolHoldsOnToItsThreshold) {
  const auto free_two = [](uint64_t threshold) -> Words {
    return {absl::StrCat("threshold default ", threshold),
            absl::StrCat("alloc-async x ", 40 * kMiB, " 1"),
            absl::StrCat("alloc-async y ", 60 * kMiB, " 1"),
            "free-async x 1",
            "free-async y 1",
            "synchronize 1",
            "info",
            "pool default",
            "info"};
  };
  const auto last_of = [&](uint64_t threshold) {
    const Words lines = Run({.steps = free_two(threshold)});
    return Words(lines.end() - 4, lines.end() - 1);
  };
  const auto holds = [](uint64_t bytes) {
    return ElementsAre(Info(256 * kMiB - bytes),
                       Bytes("default", 0, bytes, 100 * kMiB, 100 * kMiB),
                       Info(256 * kMiB - bytes));
  };
  EXPECT_THAT(last_of(~uint64_t{0}), holds(100 * kMiB));
  EXPECT_THAT(last_of(60 * kMiB), holds(60 * kMiB));
  EXPECT_THAT(last_of(0), holds(0));
}

// The wait was for something else. Of no pool at all: as one of threshold 0.
TEST_F(PreloadPoolsTest, WhatAStreamStillUsesIsNotFree) {
  for (const std::string alloc : {"alloc", "alloc-async"}) {
    EXPECT_THAT(Run({.steps = {absl::StrCat(alloc, " x ", 100 * kMiB, " 1"),
                               "work x 1", "free-async x 1", "synchronize 2",
                               "info", "synchronize 1", "info"}}),
                ElementsAre(alloc + " x 0", "work x 0", "free-async x 0",
                            "synchronize 2 0", Info(156 * kMiB),
                            "synchronize 1 0", Info(256 * kMiB), "end"));
  }
}

// Other processes may open it: its memory is the driver's, however it is asked
// for.
TEST_F(PreloadPoolsTest, AnExportablePoolThatIsTheDevicesIsTheDrivers) {
  const auto program = Start(
      "program",
      {.steps = {"new-shared-pool p", "use-pool p",
                 absl::StrCat("alloc-async x ", 4 * kMiB, " 1"), "new-pool q",
                 "use-pool q", absl::StrCat("alloc-async y ", 6 * kMiB, " 1"),
                 "pool p", "pool q", Await("end"), "free-async x 1"}});
  ASSERT_TRUE(program->AwaitOut("pool q")) << program->Err();
  ExpectLeases("a", {6 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_EQ(
      program->Out(),
      absl::StrCat("new-shared-pool p 0\nuse-pool p 0\nalloc-async x 0\n"
                   "new-pool q 0\nuse-pool q 0\nalloc-async y 0\n",
                   Bytes("p", 4 * kMiB, 4 * kMiB, 4 * kMiB, 4 * kMiB), "\n",
                   Bytes("q", 6 * kMiB, 6 * kMiB, 6 * kMiB, 6 * kMiB),
                   "\nfree-async x 0\nend\n"));
}

}  // namespace
}  // namespace gmb::component
