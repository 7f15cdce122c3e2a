// How `gmb demo` finds the program that it becomes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DemoCommandTest : public ::testing::Test {
 protected:
  // A gmb that was installed alone.
  void SetUp() override {
    ASSERT_TRUE(dir_.ok()) << dir_.status();
    fs::create_directory(Bin());
    ASSERT_TRUE(fs::copy_file(GMB_PROGRAM, Bin() / "gmb"));
  }

  // A gmb-demo that says with what it was started.
  static void InstallDemo(const fs::path& folder) {
    fs::create_directories(folder);
    std::ofstream(folder / "gmb-demo") << "#!/bin/sh\necho started: \"$@\"\n";
    fs::permissions(folder / "gmb-demo", fs::perms::owner_all);
  }

  [[nodiscard]] fs::path Bin() const { return fs::path(dir_->path()) / "bin"; }

  // The output of `gmb demo`, and how it ended.
  std::string Demo(std::vector<std::string> words) {
    words.insert(words.begin(), {(Bin() / "gmb").string(), "demo"});
    const std::string log = dir_->path() + "/log";
    absl::StatusOr<ChildProcess> gmb =
        ChildProcess::Start({.command = std::move(words), .log_path = log});
    if (!gmb.ok()) return gmb.status().ToString();
    const std::string ended =
        gmb->Wait(absl::Now() + absl::Seconds(100)).value();
    std::ifstream file(log);
    return absl::StrCat(std::string(std::istreambuf_iterator<char>(file), {}),
                        ended);
  }

  absl::StatusOr<TempDir> dir_ = TempDir::Make();
};

TEST_F(DemoCommandTest, WithoutItsProgramItSaysWhatToDo) {
  EXPECT_THAT(
      Demo({}),
      AllOf(HasSubstr("gmb-demo, and is not there: build or install"),
            HasSubstr((Bin() / "gmb").string()), HasSubstr("exit code 1")));
}

TEST_F(DemoCommandTest, ItStartsTheOneBesideGmb) {
  InstallDemo(Bin());
  EXPECT_EQ(Demo({}), "started: --device auto\nexit code 0");
}

TEST_F(DemoCommandTest, ItStartsTheOneThatWasInstalledAndPassesItsOptionsOn) {
  InstallDemo(Bin() / GMB_LIBEXEC_FROM_BIN);
  EXPECT_EQ(
      Demo({"--device", "host:40MiB", "--plain", "--keep", "--output", "json"}),
      "started: --device host:40MiB --plain --keep --output json\n"
      "exit code 0");
}

TEST_F(DemoCommandTest, AWrongOptionStartsNothing) {
  InstallDemo(Bin());
  EXPECT_THAT(Demo({"--device", "tape"}),
              AllOf(HasSubstr("--device"), HasSubstr("exit code 2")));
}

TEST_F(DemoCommandTest, AProgramThatCannotBeStartedIsNamed) {
  InstallDemo(Bin());
  fs::permissions(Bin() / "gmb-demo", fs::perms::owner_read);
  EXPECT_THAT(Demo({}), AllOf(HasSubstr("cannot start "),
                              HasSubstr((Bin() / "gmb-demo").string()),
                              HasSubstr("exit code 1")));
}

}  // namespace
}  // namespace gmb::cli
