#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/text/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

class DemoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.ok()) << dir_.status();
    // The demo's own directories go here as well, to see that they are removed.
    ASSERT_EQ(setenv("TMPDIR", dir_->path().c_str(), 1), 0);
  }
  void TearDown() override { unsetenv("TMPDIR"); }
  absl::StatusOr<ChildProcess> Start(const std::string& name,
                                     const std::string& form) const {
    return ChildProcess::Start({.command = {GMB_PROGRAM, "demo", "--device",
                                            "host:320MiB", "--output", form},
                                .log_path = dir_->path() + "/" + name});
  }
  std::string LogOf(const std::string& name) const {
    std::ifstream file(dir_->path() + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(100); }

  absl::StatusOr<TempDir> dir_ = TempDir::Make();
};

TEST_F(DemoTest, TwoAtOncePassAllTheirChecks) {
  absl::StatusOr<ChildProcess> one = Start("one", "table");
  absl::StatusOr<ChildProcess> two = Start("two", "json");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->Wait(Soon()).value(), "exit code 0") << LogOf("one");
  EXPECT_EQ(two->Wait(Soon()).value(), "exit code 0") << LogOf("two");
  EXPECT_THAT(LogOf("one"),
              HasSubstr("PASS  what was taken comes back: the same bytes at "
                        "the same address"));
  EXPECT_THAT(LogOf("one"),
              HasSubstr("PASS  when the broker is killed, the next one has "
                        "every session and lease"));
  EXPECT_THAT(LogOf("one"), HasSubstr("All 16 checks passed."));
  const std::string log = LogOf("two");
  const std::vector<std::string> lines =
      absl::StrSplit(log, '\n', absl::SkipEmpty());
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(Json::parse(lines.back())["passed"].get<bool>());
}

TEST_F(DemoTest, InterruptedItLeavesNoProcessAndNoDirectory) {
  absl::StatusOr<ChildProcess> demo = Start("demo", "table");
  ASSERT_TRUE(demo.ok());
  const absl::Time deadline = Soon();
  while (LogOf("demo").find("Act 2") == std::string::npos &&
         absl::Now() < deadline) {
  }
  demo->Signal(SIGINT);
  EXPECT_EQ(demo->Wait(Soon()).value(), "exit code 1");
  EXPECT_THAT(LogOf("demo"), HasSubstr("interrupted"));
  for (const auto& entry : std::filesystem::directory_iterator(dir_->path())) {
    EXPECT_EQ(entry.path().filename(), "demo");
  }
}

// Everyone that it has started holds the pipe that the folder's end waits for.
TEST_F(DemoTest, KilledItLeavesNoProcessAndNoDirectory) {
  absl::StatusOr<ChildProcess> demo = Start("demo", "table");
  ASSERT_TRUE(demo.ok());
  const absl::Time deadline = Soon();
  while (LogOf("demo").find("Act 2") == std::string::npos &&
         absl::Now() < deadline) {
  }
  const auto entries = [this] {
    return std::distance(std::filesystem::directory_iterator(dir_->path()), {});
  };
  EXPECT_EQ(entries(), 2);
  demo->Signal(SIGKILL);
  EXPECT_EQ(demo->Wait(Soon()).value(), "signal 9");
  while (entries() > 1 && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(entries(), 1);
}

TEST_F(DemoTest, WithoutAReaderItEndsAndLeavesNoDirectory) {
  absl::StatusOr<ChildProcess> demo = ChildProcess::Start(
      {.command = {"/bin/sh", "-c",
                   GMB_PROGRAM " demo --device host:320MiB | head -n 1"},
       .log_path = dir_->path() + "/demo"});
  ASSERT_TRUE(demo.ok());
  EXPECT_EQ(demo->Wait(Soon()).value(), "exit code 0");
  EXPECT_THAT(LogOf("demo"), HasSubstr("A broker starts"));
  for (const auto& entry : std::filesystem::directory_iterator(dir_->path())) {
    EXPECT_EQ(entry.path().filename(), "demo");
  }
}

}  // namespace
}  // namespace gmb::cli
