#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/text/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct Said {
  ExitCode code;
  std::string out;
  std::string err;
};

Said Gmb(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode code = Run(arguments, Terminal(), out, err);
  return {code, out.str(), err.str()};
}

TEST(UsageTest, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"top"},
                                             {"apply"},
                                             {"debug"},
                                             {"debug", "bundle"},
                                             {"help"},
                                             {"session", "close"},
                                             {"tenant"},
                                             {"tenant", "set"},
                                             {"tenant", "get"},
                                             {"tenant", "list"},
                                             {"tenant", "reset"},
                                             {"tenant", "delete"},
                                             {"session"},
                                             {"session", "list"},
                                             {"lease"},
                                             {"lease", "list"},
                                             {"lease", "drop"},
                                             {"pool"},
                                             {"pool", "resize"},
                                             {"pool", "drain"},
                                             {"pool", "undrain"},
                                             {"reclaim"},
                                             {"why"},
                                             {"watch"},
                                             {"audit"},
                                             {"export"},
                                             {"doctor"},
                                             {"drain"},
                                             {"upgrade"},
                                             {"keeper"},
                                             {"keeper", "status"},
                                             {"keeper", "drop"},
                                             {"hold"},
                                             {"run"},
                                             {"demo"},
                                             {"completion"},
                                             {"version"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const Said said = Gmb(arguments);
    EXPECT_EQ(said.code, ExitCode::kOk) << command[0];
    EXPECT_THAT(said.out, HasSubstr("Example: ")) << command[0];
  }
}

TEST(UsageTest, HelpThatCannotBeWrittenIsAnError) {
  for (const char* const word : {"--help", "--version", "help", "version"}) {
    std::ofstream full("/dev/full");
    std::ostringstream err;
    EXPECT_EQ(cli::Run({word}, Terminal(), full, err), ExitCode::kFailed)
        << word;
    EXPECT_THAT(err.str(), HasSubstr("cannot write the output")) << word;
  }
}

TEST(UsageTest, WithoutACommandTheHelpGoesToStandardErrorAndItIsAUsageError) {
  const Said said = Gmb({});
  EXPECT_EQ(said.code, ExitCode::kUsage);
  EXPECT_THAT(said.err, HasSubstr("Subcommands:"));
  EXPECT_THAT(Gmb({"tenant"}).err, HasSubstr("gmb tenant [OPTIONS]"));
  EXPECT_EQ(Gmb({"tenant"}).code, ExitCode::kUsage);
}

TEST(UsageTest, AWrongCommandLineIsAUsageErrorThatNamesTheOption) {
  const auto refused = [](const std::vector<std::string>& arguments,
                          const char* words) {
    const Said said = Gmb(arguments);
    EXPECT_EQ(said.code, ExitCode::kUsage) << arguments.back();
    EXPECT_THAT(said.err, HasSubstr(words));
    EXPECT_EQ(said.out, "");
  };
  refused({"dance"}, "dance");
  refused({"tenant", "dance"}, "dance");
  refused({"tenant", "list", "more"}, "more");
  refused({"status", "watch"}, "watch");
  refused({"tenant", "set"}, "NAME");
  refused({"tenant", "set", "a", "--guarantee", "-5%"}, "--guarantee");
  refused({"tenant", "set", "a", "--guarantee", "nan%"}, "--guarantee");
  refused({"tenant", "set", "a", "--limit", "101%"}, "--limit");
  refused({"tenant", "set", "a", "--undo", "--limit", "5%"},
          "--undo: it gives back all former values: leave --limit out");
  refused({"tenant", "set", "a", "--device", "x", "--undo"}, "leave --device");
  refused({"tenant", "set", "a", "--limit", "99999999999GiB"}, "--limit");
  refused({"tenant", "set", "a", "--weight", "heavy"}, "--weight");
  refused({"tenant", "set", "a", "--may-terminate", "true"}, "--may-terminate");
  refused({"tenant", "set", "a", "--min-residency", "61m"},
          "--min-residency: write a time from 0 to 1h");
  refused({"tenant", "set", "a", "--min-residency", "30"}, "--min-residency");
  refused({"tenant", "set", "a", "--pause-grace", "-1s"}, "--pause-grace");
  refused({"tenant", "set", "a", "--host-limit", "101%"}, "--host-limit");
  refused({"reclaim"}, "TENANT");
  refused({"watch", "--kind", "evicted,evictd"}, "did you mean evicted?");
  refused({"top", "--sort", "size"}, "write bytes, change");
  refused({"top", "--delay", "1ms"}, "--delay");
  refused({"session", "close", "all"}, "ID");
  refused({"apply", "-f", "x"}, "--name");
  refused({"status", "--wait", "0s"}, "--wait");
  refused({"reclaim", "a", "b"}, "b");
  refused({"reclaim", "a", "--to", "pause"}, "--to");
  refused({"reclaim", "a", "--bytes", "50%"}, "--bytes");
  refused({"reclaim", "a", "--bytes", "0"}, "write a size above 0");
  refused({"reclaim", "a", "--wait", "0s"},
          "--wait: write a time from 1ms to 1h");
  refused({"reclaim", "a", "--wait", "2h"}, "--wait");
  refused({"status", "--output", "xml"}, "--output");
  refused({"hold"}, "--bytes");
  refused({"hold", "--bytes", "50%"}, "--bytes");
  refused({"hold", "--bytes", "2MiB", "--fill", "0x100"}, "--fill");
  refused({"hold", "--bytes", "2MiB", "--fill", "0x"}, "--fill");
  refused({"hold", "--bytes", "2MiB", "--fill", "7", "--seed", "3"},
          "--seed: a byte is the same everywhere");
  refused({"hold", "--attach", "llm", "--seed", "3", "--fill", "7"}, "--seed");
  refused({"hold", "--bytes", "2MiB", "--for", "soon"}, "--for");
  refused({"hold", "--bytes", "2MiB", "--wait", "-1s"}, "--wait");
  refused({"hold", "--bytes", "2MiB", "--count", "0"}, "--count");
  refused({"pool", "resize"}, "SIZE");
  refused({"completion", "csh"}, "csh");
  refused({"demo", "--device", "foo"}, "host:512MiB");
  refused({"demo", "--device", "host:8MiB"}, "host:40MiB or more");
  refused({"hold", "--bytes", "2MiB", "--tenant-token-file", "/nonexistent"},
          "--tenant-token-file: cannot read");
}

// A script's variable that is not set must not become uid 0, no limit, or
// every device.
TEST(UsageTest, NoOptionTakesAnEmptyValue) {
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{
           {"tenant", "set", "a", "--uid"},
           {"tenant", "set", "a", "--weight"},
           {"tenant", "set", "a", "--max-handles"},
           {"tenant", "set", "a", "--max-sessions"},
           {"tenant", "set", "a", "--guarantee"},
           {"tenant", "set", "a", "--limit"},
           {"tenant", "set", "a", "--device"},
           {"tenant", "set", "a", "--may-terminate"},
           {"tenant", "set", "a", "--min-residency"},
           {"tenant", "set", "a", "--pause-grace"},
           {"tenant", "set", "a", "--host-limit"},
           {"tenant", "get"},
           {"reclaim"},
           {"reclaim", "a", "--device"},
           {"reclaim", "a", "--bytes"},
           {"reclaim", "a", "--to"},
           {"reclaim", "a", "--wait"},
           {"session", "list", "--tenant"},
           {"lease", "list", "--tenant"},
           {"pool", "drain", "--device"},
           {"pool", "resize"},
           {"pool", "resize", "50%", "--device"},
           {"why"},
           {"audit", "--limit"},
           {"hold", "--bytes"},
           {"hold", "--bytes", "2MiB", "--tenant"},
           {"hold", "--bytes", "2MiB", "--tenant-token-file"},
           {"hold", "--bytes", "2MiB", "--count"},
           {"hold", "--bytes", "2MiB", "--seed"},
           {"hold", "--bytes", "2MiB", "--fill"},
           {"hold", "--bytes", "2MiB", "--for"},
           {"hold", "--bytes", "2MiB", "--wait"},
           {"hold", "--bytes", "2MiB", "--device"},
           {"hold", "--bytes", "2MiB", "--contents"},
           {"demo", "--device"},
           {"status", "--socket-dir"},
           {"status", "--output"},
           {"completion"}}) {
    std::vector<std::string> arguments = option;
    arguments.emplace_back("");
    const Said said = Gmb(arguments);
    EXPECT_EQ(said.code, ExitCode::kUsage) << option.back();
    EXPECT_NE(said.err, "") << option.back();
    if (option.back().substr(0, 2) != "--") continue;
    arguments = option;
    arguments.back() += "=";
    arguments.emplace_back("7");
    EXPECT_EQ(Gmb(arguments).code, ExitCode::kUsage) << arguments.back();
  }
}

TEST(UsageTest, NumbersAreDecimalDigitsAndTheErrorSaysSo) {
  for (const char* const option :
       {"--uid", "--max-handles", "--max-sessions"}) {
    for (const char* const number :
         {"010", "+1", "-1", " 1", "1 ", "0x10", "1e3", "4294967296"}) {
      const Said said = Gmb({"tenant", "set", "a", option, number});
      EXPECT_EQ(said.code, ExitCode::kUsage) << option << ' ' << number;
      EXPECT_THAT(said.err, HasSubstr("write ")) << option << ' ' << number;
      EXPECT_THAT(said.err, HasSubstr(option));
    }
  }
  for (const char* const uids :
       {"1,,2", ",1", "1,", "none,1", "root", "4294967295", "1 2"}) {
    EXPECT_EQ(Gmb({"tenant", "set", "a", "--uid", uids}).code, ExitCode::kUsage)
        << uids;
  }
  EXPECT_EQ(Gmb({"audit", "--limit", "0"}).code, ExitCode::kUsage);
  EXPECT_EQ(Gmb({"hold", "--bytes", "2MiB", "--seed", "-1"}).code,
            ExitCode::kUsage);
}

TEST(UsageTest, UsageErrorsAreJsonWhenJsonIsAskedFor) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const Said said = Gmb(arguments);
    EXPECT_EQ(said.code, ExitCode::kUsage);
    EXPECT_EQ(said.out, "");
    EXPECT_TRUE(Json::accept(said.err)) << said.err;
    const Json json = Json::parse(said.err)["error"];
    EXPECT_EQ(json["code"], "INVALID_ARGUMENT");
    EXPECT_NE(json["message"], "");
    EXPECT_FALSE(json.contains("reason"));
    return json;
  };
  EXPECT_EQ(error({"--output", "json", "tenant", "set", "a", "--weight",
                   "heavy"})["field"],
            "--weight");
  EXPECT_EQ(error({"tenant", "set", "--output=json"})["field"], "NAME");
  EXPECT_EQ(error({"hold", "--output", "json"})["field"], "--bytes");
  EXPECT_EQ(error({"status", "--socket-dir", "", "--output=json"})["field"],
            "--socket-dir");
  EXPECT_EQ(error({"status", "--socket-dir=", "--output=json"})["field"],
            "--socket-dir");
  EXPECT_EQ(error({"dance", "--output=json"})["field"], "");
  EXPECT_EQ(error({"tenant", "list", "more", "--output=json"})["field"], "");
  EXPECT_EQ(error({"--output", "json"})["field"], "");
  EXPECT_EQ(error({"tenant", "--output", "json"})["message"],
            "name a command: `gmb tenant --help` lists them");
}

TEST(UsageTest, ASlipIsAnsweredWithTheWordThatWasMeant) {
  EXPECT_EQ(Gmb({"stauts"}).err,
            "gmb: not expected: stauts\n  did you mean status?\n"
            "  `gmb --help` says what there is\n");
  EXPECT_THAT(Gmb({"tenant", "set", "a", "--limt=10%"}).err,
              HasSubstr("did you mean --limit?\n  `gmb tenant set --help`"));
  EXPECT_THAT(Gmb({"tenant", "lst"}).err, HasSubstr("did you mean list?"));
  EXPECT_THAT(Gmb({"dance"}).err, Not(HasSubstr("did you mean")));
  EXPECT_THAT(
      Json::parse(Gmb({"stauts", "--output=json"}).err)["error"]["message"],
      "not expected: stauts: did you mean status?");
}

TEST(UsageTest, AProgramsOwnOptionsComeAfterTwoDashes) {
  EXPECT_EQ(Gmb({"run", "--tenant", "a", "python", "server.py", "--log"}).err,
            "gmb: not expected: --log\n"
            "  what is for the program comes after --, as in `gmb run --tenant "
            "a -- python server.py --port 80`\n"
            "  `gmb run --help` says what there is\n");
  EXPECT_THAT(
      Gmb({"run", "--tenant", "a", "python", "server.py", "--port"}).err,
      HasSubstr("did you mean --park? Otherwise: what is for the program"));
  EXPECT_THAT(Gmb({"run", "--tenat", "a", "--", "x"}).err,
              HasSubstr("did you mean --tenant?"));
}

TEST(UsageTest, UnknownWordsAreSaidInTheOrderGivenAndTheFirstOptionNamed) {
  for (const bool global : {true, false}) {
    std::vector<std::string> words = {"tenant", "set", "a",
                                      "--limt", "10%", "--weihgt=2"};
    if (global) words.insert(words.begin(), {"--output", "json"});
    const Said said = Gmb(words);
    EXPECT_EQ(said.code, ExitCode::kUsage);
    EXPECT_THAT(said.err, HasSubstr("expected: --limt 10% --weihgt=2"));
    if (!global) continue;
    EXPECT_EQ(Json::parse(said.err)["error"]["field"], "--limt");
  }
  const Said said = Gmb({"status", "more", "--colour=no", "--output=json"});
  EXPECT_EQ(Json::parse(said.err)["error"]["field"], "--colour");
}

TEST(UsageTest, WithoutABrokerEveryCommandSaysWhatToDo) {
  for (std::vector<std::string> command : std::vector<std::vector<std::string>>{
           {"status"},
           {"watch"},
           {"top"},
           {"status", "--wait", "10ms"},
           {"session", "close", "1", "--yes"},
           {"audit"},
           {"export"},
           {"tenant", "reset", "a"},
           {"reclaim", "a"},
           {"hold", "--bytes", "2MiB", "--idle", "--seal"},
           {"hold", "--idle", "5s", "--bytes", "2MiB"},
           {"hold", "--bytes", "2MiB", "--fill", "pattern", "--seed", "3"},
           {"hold", "--bytes", "2MiB"}}) {
    command.insert(command.end(), {"--socket-dir", "/nonexistent/gmb"});
    const Said said = Gmb(command);
    EXPECT_EQ(said.code, ExitCode::kNotReachable) << command[0];
    EXPECT_THAT(said.err,
                HasSubstr("start gmbd with --socket-dir /nonexistent/gmb"));
    EXPECT_EQ(said.out, "");
  }
}

TEST(UsageTest, AProbeOfABrokerThatIsNotThereIsSilent) {
  const Said said =
      Gmb({"status", "--quiet", "--socket-dir", "/nonexistent/gmb"});
  EXPECT_EQ(said.code, ExitCode::kNotReachable);
  EXPECT_EQ(said.out + said.err, "");
}

TEST(UsageTest, ErrorsAreJsonWhenJsonIsAskedFor) {
  const Said said =
      Gmb({"--output", "json", "status", "--socket-dir", "/nonexistent/gmb"});
  EXPECT_EQ(Json::parse(said.err)["error"]["code"], "UNAVAILABLE");
}

TEST(UsageTest, TheVersionHasTheCommit) {
  const Json json = Json::parse(Gmb({"version", "--json"}).out);
  const auto commit = json["commit"].get<std::string>();
  EXPECT_THAT(commit, MatchesRegex("([0-9a-f]{12})?"));
  const std::string text = json["version"].get<std::string>() +
                           (commit.empty() ? "" : " (" + commit + ")") + "\n";
  EXPECT_EQ(Gmb({"version"}).out, "gmb " + text);
  EXPECT_EQ(Gmb({"--version"}).out, "gmb " + text);
}

TEST(UsageTest, HelpIsAskedForInEitherOrder) {
  EXPECT_EQ(Gmb({"help", "tenant", "set"}).out,
            Gmb({"tenant", "set", "--help"}).out);
  EXPECT_EQ(Gmb({"help"}).out, Gmb({"--help"}).out);
  const Said slip = Gmb({"help", "tennat"});
  EXPECT_EQ(slip.code, ExitCode::kUsage);
  EXPECT_THAT(slip.err, HasSubstr("gmb: there is no command tennat: did you "
                                  "mean tenant?"));
  const Said json = Gmb({"help", "tennat", "-o", "json"});
  EXPECT_EQ(json.code, ExitCode::kUsage);
  const Json error = Json::parse(json.err)["error"];
  EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(error["field"], "");
  EXPECT_THAT(error["message"], HasSubstr("did you mean tenant?"));
  // Behind -- they are names.
  const Said names = Gmb({"help", "--", "--output", "json"});
  EXPECT_EQ(names.code, ExitCode::kUsage);
  EXPECT_THAT(names.err, HasSubstr("gmb: there is no command --output"));
}

TEST(UsageTest, JsonIsAskedForInEveryWay) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"--json"}, {"-o", "json"}, {"-ojson"}, {"--output=json"}}) {
    std::vector<std::string> right = {"version"};
    right.insert(right.end(), words.begin(), words.end());
    EXPECT_TRUE(Json::accept(Gmb(right).out)) << words[0];
    right[0] = "dance";
    EXPECT_TRUE(Json::accept(Gmb(right).err)) << words[0];
  }
}

TEST(UsageTest, ADeviceByANumberThatIsNotHereIsSaid) {
  EXPECT_THAT(Gmb({"tenant", "set", "a", "--device", "cuda:99", "--limit",
                   "10%", "--yes"})
                  .err,
              HasSubstr("this process sees no GPU 99"));
  EXPECT_THAT(Gmb({"hold", "--bytes", "2MiB", "--device", "cuda:x"}).err,
              HasSubstr("write cuda:N with a number"));
}

}  // namespace
}  // namespace gmb::cli
