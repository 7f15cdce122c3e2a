#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;

class PreloadLookupTest : public PreloadTest,
                          public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ways, PreloadLookupTest,
                         ::testing::Values("linked", "dlsym", "proc", "thread"),
                         [](const auto& test) { return test.param; });

TEST_P(PreloadLookupTest, HoweverItFindsTheDriverItsMemoryIsLeased) {
  const auto program = Start(
      "program", {.how = GetParam(),
                  .steps = {absl::StrCat("alloc x ", 20 * kMiB), "write x 4096",
                            absl::StrCat("alloc-async y ", 6 * kMiB, " 1"),
                            "write y 4096", Await("look"), "free x",
                            "free-async y 1", "trim default", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("write y 0")) << program->Err();
  ExpectLeases("a", {6 * kMiB, 20 * kMiB});
  Touch("look");
  ASSERT_TRUE(program->AwaitOut("trim default 0")) << program->Err();
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

TEST_P(PreloadLookupTest, ItIsToldItsTenantsBudget) {
  EXPECT_THAT(
      Run({.how = GetParam(),
           .steps = {"info", absl::StrCat("alloc x ", 56 * kMiB), "info"}}),
      ElementsAre(absl::StrCat("info 0 ", 256 * kMiB, " ", 256 * kMiB),
                  "alloc x 0",
                  absl::StrCat("info 0 ", 200 * kMiB, " ", 256 * kMiB), "end"));
}

// For the loader a function of the driver may have a version.
TEST_F(PreloadTest, WhoLooksUpAVersionOfASymbolHasItsMemoryLeased) {
  const auto program =
      Start("program",
            {.how = "dlvsym",
             .steps = {absl::StrCat("alloc x ", 20 * kMiB), "write x 4096",
                       Await("look"), "free x", "trim default", Await("end")},
             .environment = {"LD_LIBRARY_PATH=" FAKE_VERSIONED_DRIVER_DIR}});
  ASSERT_TRUE(program->AwaitOut("write x 0")) << program->Err();
  ExpectLeases("a", {20 * kMiB});
  Touch("look");
  ASSERT_TRUE(program->AwaitOut("trim default 0")) << program->Err();
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

TEST_F(PreloadTest, WhatIsFreeMovesNotWithOthersWhileItMeasuresItself) {
  MakeTenant("b", 0, 512 * kMiB);
  const auto other =
      Start("other", {.steps = {absl::StrCat("alloc o ", 400 * kMiB),
                                Await("free"), "free o", Await("end")},
                      .tenant = "b"});
  ASSERT_TRUE(other->AwaitOut("alloc o 0")) << other->Err();
  const auto program =
      Start("program",
            {.steps = {"info", Await("again"), "info",
                       absl::StrCat("alloc x ", 10 * kMiB), "info", "free x"}});
  const std::string limit = absl::StrCat(" ", 256 * kMiB);
  ASSERT_TRUE(program->AwaitOut(absl::StrCat("info 0 ", 112 * kMiB, limit)))
      << program->Out() << program->Err();
  Touch("free");
  ExpectLeases("b", {});
  Touch("again");
  EXPECT_EQ(program->AwaitExit(), 0);
  Touch("end");
  EXPECT_EQ(other->AwaitExit(), 0);
  EXPECT_EQ(program->Out(),
            absl::StrCat("info 0 ", 112 * kMiB, limit, "\ninfo 0 ", 112 * kMiB,
                         limit, "\nalloc x 0\ninfo 0 ", 102 * kMiB, limit,
                         "\nfree x 0\nend\n"));
}

TEST_P(PreloadLookupTest, AboveTheTenantsLimitItIsOutOfMemory) {
  EXPECT_THAT(Run({.how = GetParam(),
                   .steps = {absl::StrCat("alloc x ", 300 * kMiB),
                             absl::StrCat("alloc y ", 200 * kMiB)},
                   .run_options = {"--wait", "0s"}}),
              ElementsAre("alloc x 2", "alloc y 0", "end"));
}

TEST_F(PreloadTest, WhatIsNotServedIsTheDriversAndNoLease) {
  const auto program = Start(
      "program",
      {.steps = {absl::StrCat("managed m ", 4 * kMiB), "new-shared-pool shared",
                 absl::StrCat("alloc-pool s ", 4 * kMiB, " 1 shared"),
                 "range m 4096", Await("look"), "free m", "free-async s 1"}});
  ASSERT_TRUE(program->AwaitOut("range m")) << program->Err();
  ExpectLeases("a", {});
  Touch("look");
  EXPECT_EQ(program->AwaitExit(), 0);
  EXPECT_EQ(program->Out(),
            absl::StrCat("managed m 0\nnew-shared-pool shared 0\nalloc-pool s "
                         "0\nrange m 0 0 ",
                         4 * kMiB, "\nfree m 0\nfree-async s 0\nend\n"));
}

TEST_F(PreloadTest, TheDefaultPoolIsServed) {
  const auto program =
      Start("program",
            {.steps = {absl::StrCat("alloc-pool p ", 8 * kMiB, " 1 default"),
                       "write p 4096", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("write p 0")) << program->Err();
  ExpectLeases("a", {8 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
