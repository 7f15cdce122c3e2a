#include "client/cli/demo/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "client/cli/demo/line_channel.h"
#include "client/cli/demo/temp_dir.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

class ChildProcessTest : public ::testing::Test {
 protected:
  ChildProcess::Options Shell(const std::string& script) const {
    return {.command = {"/bin/sh", "-c", script},
            .log_path = dir_->path() + "/log"};
  }
  std::string Log() const {
    std::ifstream file(dir_->path() + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }

  absl::StatusOr<TempDir> dir_ = TempDir::Make();
};

TEST_F(ChildProcessTest, ItSaysHowTheProgramEnded) {
  absl::StatusOr<ChildProcess> process =
      ChildProcess::Start(Shell("echo words; exit 7"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait(Soon()).value(), "exit code 7");
  EXPECT_EQ(Log(), "words\n");
  EXPECT_FALSE(process->running());
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsAnErrorWithItsName) {
  const absl::Status status =
      ChildProcess::Start(
          {.command = {"/nonexistent"}, .log_path = dir_->path() + "/log"})
          .status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("/nonexistent"), std::string::npos);
}

TEST_F(ChildProcessTest, ASignalEndsIt) {
  absl::StatusOr<ChildProcess> process =
      ChildProcess::Start(Shell("exec sleep 1000"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(process->running());
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->Wait(absl::Now()).status()));
  process->Signal(SIGKILL);
  EXPECT_EQ(process->Wait(Soon()).value(), "signal 9");
}

TEST_F(ChildProcessTest, ItIsInAGroupOfItsOwn) {
  absl::StatusOr<ChildProcess> process =
      ChildProcess::Start(Shell("exec sleep 1000"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(getpgid(process->pid()), process->pid());
}

TEST_F(ChildProcessTest, ItDoesNotOutliveTheObject) {
  pid_t pid = 0;
  {
    absl::StatusOr<ChildProcess> process =
        ChildProcess::Start(Shell("exec sleep 1000"));
    ASSERT_TRUE(process.ok()) << process.status();
    pid = process->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildProcessTest, TheKernelKillsItWithTheThreadThatStartedIt) {
  absl::StatusOr<ChildProcess> process = absl::UnknownError("not started");
  std::thread([&] {
    process = ChildProcess::Start(Shell("exec sleep 1000"));
  }).join();
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait(Soon()).value(), "signal 9");
}

}  // namespace
}  // namespace gmb::cli
