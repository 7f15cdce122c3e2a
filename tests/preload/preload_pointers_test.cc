// The answers to what leased memory is of are those of the driver's own.
#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;

TEST_F(PreloadTest, AnAllocationIsOfTheContextThatItWasMadeIn) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 4 * kMiB), "alloc s 512",
                     "new-context 0", absl::StrCat("alloc y ", 4 * kMiB),
                     "of x", "of s", "of y", "destroy-context ", "of x"}}),
      ElementsAre("alloc x 0", "alloc s 0", "new-context 0 0", "alloc y 0",
                  "of x 0 primary none 0", "of s 0 primary none 0",
                  "of y 0 own none 0", "destroy-context  0",
                  "of x 0 primary none 0", "end"));
}

TEST_F(PreloadTest, MemoryOfAPoolIsOfThatAndOfNoContext) {
  EXPECT_THAT(Run({.steps = {"new-pool p", "alloc-pool x 4096 1 p",
                             absl::StrCat("alloc-async y ", 4 * kMiB, " 1"),
                             "of x", "of y"}}),
              ElementsAre("new-pool p 0", "alloc-pool x 0", "alloc-async y 0",
                          "of x 0 none p 0", "of y 0 none default 0", "end"));
}

TEST_F(PreloadTest, MemoryThatAProgramMapsHasTheHandlesThatItAskedFor) {
  for (const std::string types : {"0", "1"}) {
    const std::string bytes = absl::StrCat(2 * kMiB);
    EXPECT_THAT(
        Run({.steps = {"reserve v " + bytes, "create h " + bytes + " " + types,
                       "map h v " + bytes, "access v " + bytes, "of v"}}),
        ElementsAre("reserve v 0", "create h 0", "map h 0", "access v 0",
                    "of v 0 none none " + types, "end"));
  }
}

}  // namespace
}  // namespace gmb::component
