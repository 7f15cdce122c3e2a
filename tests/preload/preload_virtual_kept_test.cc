// Handles of cuMemCreate that were released a moment ago, or asked for before
// the program does.
#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class PreloadVirtualKeptTest : public PreloadTest {
 protected:
  static Words Creates(int first, int count, uint64_t mib) {
    Words steps;
    for (int i = first; i < first + count; ++i)
      steps.push_back(absl::StrCat("create h", i, " ", mib * kMiB));
    return steps;
  }
  static Words Joined(const std::vector<Words>& all) {
    Words steps;
    for (const Words& some : all)
      steps.insert(steps.end(), some.begin(), some.end());
    return steps;
  }
  [[nodiscard]] uint64_t HighestLeaseId() const {
    v1::ListLeasesRequest request;
    request.set_tenant("a");
    const auto leases = admin().ListLeases(request);
    EXPECT_TRUE(leases.ok()) << leases.status();
    uint64_t highest = 0;
    for (const auto& lease : leases->leases())
      highest = std::max(highest, lease.id());
    return highest;
  }
};

// Not each time: on a machine that is busy a moment may be over.
TEST_F(PreloadVirtualKeptTest, WhatWasReleasedServesAgainWithoutTheBroker) {
  constexpr uint64_t kPairs = 100;
  Words steps = {absl::StrCat("reserve v ", 4 * kMiB)};
  for (uint64_t i = 0; i < kPairs; ++i) {
    for (const char* const step : {"create h ", "map h v ", "access v "})
      steps.push_back(absl::StrCat(step, 4 * kMiB));
    steps.insert(steps.end(),
                 {"release h", absl::StrCat("unmap v ", 4 * kMiB)});
  }
  steps.insert(
      steps.end(),
      {"release h", absl::StrCat("create h ", 4 * kMiB, " 1"), "properties h",
       absl::StrCat("map h v ", 4 * kMiB), absl::StrCat("access v ", 4 * kMiB),
       absl::StrCat("put v ", 4 * kMiB, " 3"), absl::StrCat("get v ", 4 * kMiB),
       Await("end")});
  const auto program = Start("program", {.steps = steps});
  ASSERT_TRUE(program->AwaitOut("get v")) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat(
                                  "unmap v 0\nrelease h 1\ncreate h 0\n",
                                  "properties h 0 1 0\nmap h 0\naccess v 0\n",
                                  "put v 0\nget v 0 ", 3 * 4 * kMiB)));
  ExpectLeases("a", {4 * kMiB});
  EXPECT_LT(HighestLeaseId(), kPairs / 2);  // they are counted
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

TEST_F(PreloadVirtualKeptTest, ARunOfHandlesIsAskedForAheadAndTheRestGoesBack) {
  constexpr int kRun = 100;
  const auto program = Start("program", {.steps = Joined({Creates(0, kRun, 2),
                                                          {Await("last")},
                                                          Creates(kRun, 1, 2),
                                                          {Await("end")}})});
  ASSERT_TRUE(program->AwaitOut(absl::StrCat("create h", kRun - 1, " 0")))
      << program->Err();
  ExpectLeases("a", std::vector<uint64_t>(kRun, 2 * kMiB));
  Touch("last");
  ASSERT_TRUE(program->AwaitOut(absl::StrCat("create h", kRun, " 0")));
  // Some were granted that nobody wanted.
  EXPECT_GT(HighestLeaseId(), uint64_t{kRun} + 1);
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

// The limit is 256 MiB, and nothing is waited for. The run ends 16 MiB before
// it, with as much on its way.
TEST_F(PreloadVirtualKeptTest, WhatIsAskedForAheadRefusesNothing) {
  EXPECT_THAT(Run({.steps = Joined({Creates(0, 15, 16),
                                    {absl::StrCat("create x ", 14 * kMiB)},
                                    Creates(15, 1, 2)}),
                   .run_options = {"--wait", "0s"}}),
              Each(::testing::AnyOf(EndsWith(" 0"), "end")));
  EXPECT_THAT(Run({.steps = Joined({Creates(0, 15, 16),
                                    {absl::StrCat("alloc x ", 16 * kMiB)}}),
                   .run_options = {"--wait", "0s"}}),
              Each(::testing::AnyOf(EndsWith(" 0"), "end")));
}

TEST_F(PreloadVirtualKeptTest, WhatIsAskedForAheadIsFree) {
  EXPECT_THAT(Run({.steps = Joined({Creates(0, 20, 2), {"info"}})}),
              Contains(absl::StrCat("info 0 ", 216 * kMiB, " ", 256 * kMiB)));
}

// All that fits is served, and then none: what did not come ahead is asked for
// once more.
TEST_F(PreloadVirtualKeptTest, ARunReachesTheLimit) {
  const Words out =
      Run({.steps = Creates(0, 65, 4), .run_options = {"--wait", "0s"}});
  ASSERT_EQ(out.size(), 66U);
  for (int i = 0; i < 65; ++i)
    EXPECT_EQ(out[i], absl::StrCat("create h", i, i < 64 ? " 0" : " 2"));
}

}  // namespace
}  // namespace gmb::component
