#include "client/cli/commands/completion.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/app.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/text/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/shell.h"

namespace gmb::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string Script(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"completion"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Run(words, Terminal(), out, err), ExitCode::kOk) << err.str();
  return out.str();
}

// How a test asks each shell what it offers for the words of a line, the last
// of which is being typed: one word a line. zsh has no completion without a
// terminal, so what its script calls is put in place of the real functions.
constexpr char kZshStubs[] = R"(
compdef() { }
compadd() { print -rl -- "$@" }
_files() { print -r -- "files $@" }
_describe() { print -rl -- ${${(P)2}%%:*} }
compset() { }
)";

class ShellTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!HaveShell(GetParam()))
      GTEST_SKIP() << "no " << GetParam() << " here: install it to run this";
  }
  std::vector<std::string> Offered(const std::string& line) const {
    const std::string said = RunInShell(GetParam(), Asking(line));
    return absl::StrSplit(said, '\n', absl::SkipEmpty());
  }

 private:
  std::string Asking(const std::string& line) const {
    const std::string script = Script({GetParam()});
    if (GetParam() == "bash") {
      return absl::StrCat(
          script, "COMP_WORDS=(", line,
          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_gmb\n",
          "((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    }
    if (GetParam() == "zsh") {
      return absl::StrCat(kZshStubs, script, "words=(", line,
                          ")\nCURRENT=${#words}\n_gmb\n");
    }
    // The last word of a line in quotes of its own would not be completed.
    const std::string typed(absl::StripSuffix(line, "''"));
    return absl::StrCat(script, "complete -C \"", typed,
                        "\" | string split -f 1 \\t\n");
  }
};

INSTANTIATE_TEST_SUITE_P(Shells, ShellTest,
                         ::testing::Values("bash", "zsh", "fish"),
                         [](const auto& test) { return test.param; });

TEST_P(ShellTest, ItOffersCommandsAndTheirOptions) {
  EXPECT_THAT(Offered("gmb ''"), Contains("doctor"));
  const std::vector<std::string> tenant = Offered("gmb tenant ''");
  for (const char* const word : {"set", "get", "list", "delete"})
    EXPECT_THAT(tenant, Contains(word));
  EXPECT_THAT(tenant, Not(Contains("doctor")));
  EXPECT_THAT(Offered("gmb tenant set a --"), Contains("--guarantee"));
  EXPECT_THAT(Offered("gmb tenant set a --"), Contains("--socket-dir"));
  EXPECT_THAT(Offered("gmb reclaim a --"), Contains("--bytes"));
  EXPECT_THAT(Offered("gmb completion ''"), Contains("fish"));
}

TEST_P(ShellTest, ValuesOfOptionsAreNotTakenForCommands) {
  EXPECT_THAT(Offered("gmb --output json pool ''"), Contains("undrain"));
  EXPECT_THAT(Offered("gmb --socket-dir tenant pool ''"), Contains("undrain"));
}

TEST_P(ShellTest, ItOffersTheWordsThatAnOptionTakes) {
  EXPECT_THAT(Offered("gmb status --output ''"),
              UnorderedElementsAre("json", "table"));
  EXPECT_THAT(Offered("gmb hold --contents ''"),
              UnorderedElementsAre("preserve", "discard", "resident"));
  EXPECT_THAT(Offered("gmb reclaim a --to ''"),
              UnorderedElementsAre("trim", "evict"));
  EXPECT_THAT(Offered("gmb tenant set a --may-terminate ''"),
              UnorderedElementsAre("yes", "no"));
  EXPECT_THAT(Offered("gmb run --fallback ''"),
              UnorderedElementsAre("fail", "native"));
}

TEST_P(ShellTest, ItOffersNothingForValuesThatItCannotKnow) {
  for (const char* const line :
       {"gmb hold --tenant ''", "gmb hold --bytes ''",
        "gmb tenant set a --device ''", "gmb tenant set a --guarantee ''",
        "gmb tenant set a --uid ''", "gmb tenant set a --min-residency ''",
        "gmb reclaim a --bytes ''", "gmb demo --device ''"}) {
    EXPECT_THAT(Offered(line), IsEmpty()) << line;
  }
}

TEST_P(ShellTest, ItAsksTheBrokerForTenantsWhereOneIsWanted) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok()) << dir.status();
  const std::string gmb = dir->path() + "/gmb";
  std::ofstream(gmb) << "#!/bin/sh\n[ \"$*\" = 'tenant list --names' ] && "
                        "printf 'chat\\nbatch\\n'\n";
  ASSERT_EQ(chmod(gmb.c_str(), 0755), 0);
  const std::string path = getenv("PATH");
  ASSERT_EQ(setenv("PATH", (dir->path() + ":" + path).c_str(), 1), 0);
  for (const char* const line :
       {"gmb tenant get ''", "gmb why ''", "gmb hold --tenant ''"}) {
    EXPECT_THAT(Offered(line), IsSupersetOf({"chat", "batch"})) << line;
  }
  EXPECT_THAT(Offered("gmb status ''"), Not(Contains("chat")));
  EXPECT_THAT(Offered("gmb tenant set --"), Not(Contains("chat")));
  ASSERT_EQ(setenv("PATH", path.c_str(), 1), 0);
}

TEST_P(ShellTest, ItOffersDirectoriesAndFilesWhereTheyAreWanted) {
  const std::string where = GetParam() == "zsh" ? "''" : "/us";
  const std::string what = GetParam() == "zsh" ? "files -/" : "/usr";
  EXPECT_THAT(Offered("gmb status --socket-dir " + where),
              Contains(HasSubstr(what)));
  EXPECT_THAT(Offered("gmb hold --tenant-token-file " + where),
              Contains(HasSubstr(what.substr(0, 4))));
  EXPECT_THAT(Offered("gmb run --preload " + where),
              Contains(HasSubstr(what.substr(0, 4))));
}

TEST(CompletionTest, BashCompletesAValueAfterAnEqualsSign) {
  if (!HaveShell("bash")) GTEST_SKIP() << "no bash here";
  const std::string said =
      RunInShell("bash", Script({"bash"}) +
                             "COMP_WORDS=(gmb status --output = js)\n"
                             "COMP_CWORD=4\n_gmb\necho \"${COMPREPLY[@]}\"\n"
                             "COMP_WORDS=(gmb --output = json pool un)\n"
                             "COMP_CWORD=5\n_gmb\necho \"${COMPREPLY[@]}\"\n");
  EXPECT_EQ(said, "json\nundrain\n");
}

TEST(CompletionTest, BashOffersWhatBeginsWithTheWordBeingTyped) {
  if (!HaveShell("bash")) GTEST_SKIP() << "no bash here";
  const std::string said = RunInShell(
      "bash", Script({"bash"}) +
                  "COMP_WORDS=(gmb te)\nCOMP_CWORD=1\n_gmb\n"
                  "echo \"${COMPREPLY[@]}\"\n"
                  "COMP_WORDS=(gmb tenant set a --gu)\nCOMP_CWORD=4\n_gmb\n"
                  "echo \"${COMPREPLY[@]}\"\n");
  EXPECT_EQ(said, "tenant\n--guarantee\n");
}

TEST(CompletionTest, CommandsThatAreNotForPeopleAreNotOffered) {
  EXPECT_THAT(Script({"bash"}), Not(HasSubstr("demo-actor")));
  EXPECT_THAT(Script({"fish"}), Not(HasSubstr("demo-actor")));
}

TEST(CompletionTest, ZshAndFishDescribeWhatTheyOffer) {
  EXPECT_THAT(Script({"zsh"}), HasSubstr("'doctor:Find what is wrong"));
  EXPECT_THAT(Script({"fish"}), HasSubstr("-a doctor -d 'Find what is wrong"));
}

TEST(CompletionTest, InJsonTheScriptIsAString) {
  const Json json = Json::parse(Script({"bash", "--output", "json"}));
  EXPECT_EQ(json["shell"], "bash");
  EXPECT_EQ(json["script"], Script({"bash"}));
}

}  // namespace
}  // namespace gmb::cli
