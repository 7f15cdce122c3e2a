#include <signal.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

constexpr char kError[] = "802";

// Starts, is granted memory, and goes on when its broker is gone.
ProgramRun Survivor(const std::string& await, Words run_options) {
  return {.steps = {absl::StrCat("alloc x ", 4 * kMiB), await, "write x 4096",
                    absl::StrCat("alloc y ", 4 * kMiB), "info", "free x",
                    absl::StrCat("alloc-async z ", 4 * kMiB, " 1")},
          .run_options = std::move(run_options)};
}

TEST_F(PreloadTest, WhenTheBrokerDiesMemoryStaysAndNoneIsAdded) {
  const auto program = Start("program", Survivor(Await("dead"), {}));
  ASSERT_TRUE(program->AwaitOut("alloc x 0")) << program->Err();
  KillBroker();
  Touch("dead");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr("write x 0"));
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("alloc y ", kError)));
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("info ", kError)));
  EXPECT_THAT(program->Out(), HasSubstr("free x 0"));
  EXPECT_THAT(program->Err(), HasSubstr("the session is over"));
}

TEST_F(PreloadTest, WithTheFallbackItGoesOnWithTheDriversMemory) {
  const auto program =
      Start("program", Survivor(Await("dead"), {"--fallback", "native"}));
  ASSERT_TRUE(program->AwaitOut("alloc x 0")) << program->Err();
  KillBroker();
  Touch("dead");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr("alloc y 0\ninfo 0 "));
  EXPECT_THAT(program->Out(), HasSubstr("free x 0\nalloc-async z 0\nend"));
}

// It would be another tenant without: whose socket this is, or the user's.
TEST_F(PreloadTest, ATokenFileThatHoldsNoTokenIsNoSession) {
  const std::string file = Directory() + "/token";
  std::ofstream{file};
  for (const std::string& named : {file, file + "s"}) {
    Program program(
        Directory(), "program",
        WithFakeDriver({"GMB_SOCKET_DIR=" + TenantDir("a"),
                        "GMB_RUN_TOKEN_FILE=" + named, "GMB_RUN_VERBOSE=1",
                        "LD_PRELOAD=" PRELOAD_LIBRARY, PRELOAD_PROGRAM, "proc",
                        "alloc x 4096"}));
    EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
    EXPECT_EQ(program.Out(), absl::StrCat("alloc x ", kError, "\nend\n"));
    EXPECT_THAT(program.Err(), HasSubstr(named));
  }
}

TEST_F(PreloadTest, TheFallbackIsForNoBrokerAndNotForARefusal) {
  EXPECT_THAT(Run({.steps = {absl::StrCat("alloc x ", 300 * kMiB)},
                   .run_options = {"--fallback", "native", "--wait", "0s"}}),
              ::testing::ElementsAre("alloc x 2", "end"));
}

TEST_F(PreloadTest, ABrokerThatCameBackServesAgain) {
  const auto program = Start(
      "program", {.steps = {absl::StrCat("alloc x ", 4 * kMiB), Await("back"),
                            absl::StrCat("alloc y ", 6 * kMiB), "write y 4096",
                            Await("end"), "free x", "free y"}});
  ASSERT_TRUE(program->AwaitOut("alloc x 0")) << program->Err();
  KillBroker();
  StartGpuBroker();
  Touch("back");
  ASSERT_TRUE(program->AwaitOut("write y 0")) << program->Err();
  ExpectLeases("a", {6 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

}  // namespace
}  // namespace gmb::component
