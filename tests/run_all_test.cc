// A program of tests says about itself how it ended: this one, run anew.
#include "tests/run_all.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace gmb {
namespace {

// Run by the tests below alone.
TEST(Example, DISABLED_Passes) {}
TEST(Example, DISABLED_Skips) { GTEST_SKIP() << "no reason"; }
TEST(Example, DISABLED_SkipsToo) { GTEST_SKIP() << "no reason"; }
TEST(Example, DISABLED_Fails) { FAIL() << "on purpose"; }

// The exit code of these examples.
int ExitOf(const std::string& filter) {
  const std::string command =
      "exec \"$0\" --gtest_also_run_disabled_tests --gtest_filter=" + filter;
  const std::string quiet =
      "sh -c '" + command + "' /proc/" + std::to_string(::getpid()) + "/exe";
  const int status = ::system((quiet + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RunAllTest, TestsThatAllSkipThemselvesAreSkipped) {
  EXPECT_EQ(ExitOf("*Example*Skips"), kAllSkipped);
  EXPECT_EQ(ExitOf("*Example*Skips*"), kAllSkipped);
}

TEST(RunAllTest, OneThatPassesOrFailsIsNot) {
  EXPECT_EQ(ExitOf("*Example*Passes"), 0);
  EXPECT_EQ(ExitOf("*Example*Passes:*Example*Skips*"), 0);
  EXPECT_EQ(ExitOf("*Example*Skips*:*Example*Fails"), 1);
  EXPECT_EQ(ExitOf("*Example*Fails"), 1);
}

}  // namespace
}  // namespace gmb
