// `gmb tenant set`: slips are refused, what takes memory is asked first, and
// what was set is taken back.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TenantSetTest : public RealBroker {
 protected:
  // A process of b's that holds so much.
  void Hold(const std::string& size) {
    holder_.emplace(
        Start("hold", {"hold", "--tenant", "b", "--bytes", size}).value());
    AwaitJson({"session", "list"}, [](const Json& list) {
      return list["sessions"].size() == 1 &&
             list["sessions"][0]["leased_bytes"] > 0;
    });
  }
  uint64_t LimitOf(const std::string& tenant) {
    return Gmb({"tenant", "get", tenant, "--output", "json"})
        .json()["pools"][0]["view"]["limit_bytes"];
  }
  // The words of `gmb tenant set b --limit 8MiB` on a terminal where somebody
  // types `typed`.
  std::string SetOnATerminal(const std::string& typed) {
    const std::string socket_dir = broker_->socket_dir();
    int terminal = -1;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid < 0) return "no terminal";
    if (pid == 0) {
      ::execl(GMB_PROGRAM, "gmb", "tenant", "set", "b", "--limit", "8MiB",
              "--socket-dir", socket_dir.c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_EQ(::write(terminal, typed.data(), typed.size()),
              static_cast<ssize_t>(typed.size()));
    std::string said;
    char part[1024];
    // EIO is the end: the other side is closed.
    for (ssize_t n; (n = ::read(terminal, part, sizeof part)) > 0;)
      said.append(part, static_cast<size_t>(n));
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    ::close(terminal);
    return said;
  }

 private:
  std::optional<ChildProcess> holder_;
};

TEST_F(TenantSetTest, AnAmountThatComesToNothingIsRefused) {
  const uint64_t before = LimitOf("b");
  const Said percent = Gmb({"tenant", "set", "b", "--limit", "75"});
  EXPECT_EQ(percent.code, ExitCode::kFailed);
  EXPECT_THAT(percent.err,
              AllOf(HasSubstr("comes to nothing"),
                    HasSubstr("write 75% or 75GiB"), HasSubstr("field limit")));
  EXPECT_EQ(LimitOf("b"), before);
  EXPECT_THAT(Gmb({"tenant", "set", "b", "--guarantee", "2000KB"}).err,
              HasSubstr("field guarantee"));
  EXPECT_THAT(Gmb({"tenant", "set", "b", "--guarantee", "0.001%"}).err,
              HasSubstr("a larger share"));
  EXPECT_THAT(Gmb({"tenant", "set", "new", "--limit", "75"}).err,
              HasSubstr("field limit"));
  // Nothing is what 0 says.
  EXPECT_EQ(
      Gmb({"tenant", "set", "b", "--guarantee", "0", "--limit", "0"}).code,
      ExitCode::kOk);
}

TEST_F(TenantSetTest, WhatTakesMemoryNeedsYesWithoutATerminal) {
  Hold("16MiB");
  const Said asked =
      Gmb({"tenant", "set", "b", "--guarantee", "0", "--limit", "4MiB"});
  EXPECT_EQ(asked.code, ExitCode::kFailed);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("takes 12.00 MiB of"),
                               HasSubstr("from tenant b, which has 1 session"),
                               HasSubstr("nothing was changed: say --yes")));
  EXPECT_EQ(LimitOf("b"), 64 << 20);

  const Said dry = Gmb({"tenant", "set", "b", "--guarantee", "0", "--limit",
                        "4MiB", "--dry-run"});
  EXPECT_EQ(dry.code, ExitCode::kOk);
  EXPECT_THAT(dry.out, AllOf(HasSubstr("takes 12.00 MiB of"),
                             HasSubstr("nothing was changed")));
  EXPECT_EQ(LimitOf("b"), 64 << 20);

  // A change that takes nothing is not asked for.
  EXPECT_EQ(Gmb({"tenant", "set", "b", "--limit", "32MiB"}).code,
            ExitCode::kOk);
  EXPECT_EQ(Gmb({"tenant", "set", "b", "--guarantee", "0", "--limit", "4MiB",
                 "--yes"})
                .code,
            ExitCode::kOk);
  EXPECT_EQ(LimitOf("b"), 4 << 20);
  // It is above its limit already: this takes no more.
  EXPECT_EQ(Gmb({"tenant", "set", "b", "--weight", "2"}).code, ExitCode::kOk);
}

TEST_F(TenantSetTest, OnATerminalItAsks) {
  Hold("16MiB");
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--guarantee", "0"}).code,
            ExitCode::kOk);
  EXPECT_THAT(SetOnATerminal("\n"),
              AllOf(HasSubstr("this takes 8.00 MiB"), HasSubstr("[y/N]"),
                    HasSubstr("nothing was changed")));
  EXPECT_EQ(LimitOf("b"), 64 << 20);
  EXPECT_THAT(SetOnATerminal("y\n"),
              AllOf(HasSubstr("[y/N]"), HasSubstr("pending")));
  EXPECT_EQ(LimitOf("b"), 8 << 20);
}

TEST_F(TenantSetTest, UndoGivesBackTheFormerValues) {
  const Said nothing = Gmb({"tenant", "set", "b", "--undo"});
  EXPECT_EQ(nothing.code, ExitCode::kFailed);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to undo"));

  ASSERT_EQ(Gmb({"tenant", "set", "b", "--limit", "50%", "--weight", "3"}).code,
            ExitCode::kOk);
  // The same again changes nothing, and is not what is undone.
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--weight", "3"}).code, ExitCode::kOk);
  EXPECT_THAT(Gmb({"tenant", "set", "b", "--undo", "--weight", "1"}).err,
              HasSubstr("leave --weight out"));
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--undo"}).code, ExitCode::kOk);
  const Json quota =
      Gmb({"tenant", "get", "b", "--output", "json"}).json()["pools"][0];
  EXPECT_EQ(quota["view"]["limit_bytes"], 64 << 20);
  EXPECT_EQ(quota["quota"]["weight"], 1);
  EXPECT_THAT(Gmb({"audit"}).out,
              HasSubstr("limit 50% -> 100%, weight 3 -> 1"));
  // An undo is a change, and can be undone.
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--undo"}).code, ExitCode::kOk);
  EXPECT_EQ(LimitOf("b"), 32 << 20);
}

TEST_F(TenantSetTest, AnUndoThatTakesMemoryIsAskedForToo) {
  ASSERT_EQ(
      Gmb({"tenant", "set", "b", "--guarantee", "0", "--limit", "8MiB"}).code,
      ExitCode::kOk);
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--limit", "max"}).code, ExitCode::kOk);
  Hold("16MiB");
  EXPECT_THAT(Gmb({"tenant", "set", "b", "--undo"}).err,
              HasSubstr("takes 8.00 MiB"));
  EXPECT_THAT(Gmb({"tenant", "set", "nobody", "--undo"}).err,
              AllOf(HasSubstr("NO_SUCH_TENANT"), Not(HasSubstr("made"))));
}

}  // namespace
}  // namespace gmb::cli
