#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

// The library in LD_PRELOAD, put there by somebody else than `gmb run`.

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class PreloadAloneTest : public PreloadTest {
 protected:
  // Asks for memory, and for how much there is; ends with 7.
  std::unique_ptr<Program> StartAlone(const std::string& socket_dir,
                                      const Words& environment) const {
    Words words = WithFakeDriver(
        {"GMB_SOCKET_DIR=" + socket_dir, "LD_PRELOAD=" PRELOAD_LIBRARY});
    words.insert(words.end(), environment.begin(), environment.end());
    words.insert(words.end(),
                 {PRELOAD_PROGRAM, "proc", absl::StrCat("alloc x ", 4 * kMiB),
                  absl::StrCat("alloc-async y ", 4 * kMiB, " 1"), "info",
                  Await("end"), "exit 7"});
    return std::make_unique<Program>(Directory(), "alone", words);
  }

  // That program without anything to wait for, to its end.
  Said RunAlone(const std::string& socket_dir, const Words& environment) const {
    Touch("end");
    const auto program = StartAlone(socket_dir, environment);
    const int exit_code = program->AwaitExit();
    return {exit_code, program->Out(), program->Err()};
  }

  [[nodiscard]] std::string Nobody() const { return Directory() + "/nobody"; }
};

constexpr char kNotReady[] = "alloc x 802\nalloc-async y 802\ninfo 802 0 0\n";

TEST_F(PreloadAloneTest, TheEnvironmentDoesWhatTheCommandDoes) {
  const auto program = StartAlone(TenantDir("a"), {});
  ASSERT_TRUE(program->AwaitOut("info 0")) << program->Err();
  ExpectLeases("a", {4 * kMiB, 4 * kMiB});
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat(" ", 256 * kMiB, "\n")));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 7);
  EXPECT_EQ(program->Err(), "");
}

TEST_F(PreloadAloneTest, WithoutABrokerTheProgramStartsAndGetsNoMemory) {
  const Said said = RunAlone(Nobody(), {});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, kNotReady);
  EXPECT_EQ(said.err, "");
}

TEST_F(PreloadAloneTest, WithoutABrokerItSaysWhereItLookedWhenAsked) {
  const Said said = RunAlone(Nobody(), {"GMB_RUN_VERBOSE=1"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, kNotReady);
  EXPECT_THAT(said.err, ::testing::StartsWith("gmb run["));
  EXPECT_THAT(said.err, HasSubstr("no greeting from a broker at " + Nobody()));
}

TEST_F(PreloadAloneTest, ASettingThatIsNotUnderstoodIsSaidOnce) {
  const Said said = RunAlone(Nobody(), {"GMB_RUN_WAIT=soon"});
  EXPECT_EQ(said.exit_code, 7);
  const size_t at = said.err.find("GMB_RUN_WAIT=soon is not understood");
  ASSERT_NE(at, std::string::npos) << said.err;
  EXPECT_EQ(said.err.find("GMB_RUN_WAIT", at + 1), std::string::npos)
      << said.err;
}

TEST_F(PreloadAloneTest, WithoutABrokerTheFallbackIsTheDriversMemory) {
  const Said said = RunAlone(Nobody(), {"GMB_RUN_FALLBACK=native"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_THAT(said.out, HasSubstr("alloc x 0\nalloc-async y 0\ninfo 0 "));
}

TEST_F(PreloadAloneTest, AProcessThatTheBrokerTurnsAwayGetsNoMemory) {
  for (const Words& environment :
       {Words{"GMB_RUN_VERBOSE=1"},
        Words{"GMB_RUN_VERBOSE=1", "GMB_RUN_FALLBACK=native"}}) {
    const Said said = RunAlone(SocketDir(), environment);
    EXPECT_EQ(said.exit_code, 7);
    EXPECT_EQ(said.out, kNotReady);
    EXPECT_THAT(said.err,
                HasSubstr("nothing says which tenant this process is"));
  }
}

TEST_F(PreloadAloneTest, ATokenOfNoTenantIsTurnedAway) {
  const std::string token_file = Directory() + "/token";
  std::ofstream(token_file) << std::string(32, 'x') << '\n';
  const Said said =
      RunAlone(SocketDir(), {"GMB_RUN_VERBOSE=1", "GMB_RUN_FALLBACK=native",
                             "GMB_RUN_TOKEN_FILE=" + token_file});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, kNotReady);
  EXPECT_THAT(said.err, HasSubstr("no tenant has this token"));
}

// It says so with the code that a broker has that is not there.
TEST_F(PreloadAloneTest, ATenantThatIsBeingDeletedIsNoBrokerThatIsAbsent) {
  const auto holder = Start(
      "holder", {.steps = {absl::StrCat("alloc x ", 4 * kMiB), Await("bye")}});
  ASSERT_TRUE(holder->AwaitOut("alloc x 0")) << holder->Err();
  const auto deletion =
      StartGmb("deletion", {"tenant", "delete", "a", "--wait", "60s"});
  ASSERT_TRUE(component::Await(
      [&] { return absl::StrContains(Gmb({"audit"}).out, "see_off_tenant"); }));
  const Said said = RunAlone(TenantDir("a"),
                             {"GMB_RUN_VERBOSE=1", "GMB_RUN_FALLBACK=native"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, kNotReady);
  EXPECT_THAT(said.err, HasSubstr("the tenant is being deleted"));
  const Said run = Gmb({"run", "--tenant", "a", "--fallback", "native",
                        "--preload", PRELOAD_LIBRARY, "--", "echo", "started"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("DRAINING"));
  Touch("bye");
  EXPECT_EQ(holder->AwaitExit(), 0);
  EXPECT_EQ(deletion->AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
