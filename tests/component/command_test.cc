// Every command of the real gmb on the real gmbd: for people, as JSON, and used
// wrongly. tests/cli tests what each says in detail.
#include <signal.h>

#include <sstream>
#include <string>
#include <vector>

#include "client/cli/text/json.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using cli::Json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class CommandTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a", 32 * kMiB);
    client_ = ConnectAs("a");
    lease_ = client_->Acquire(4 * kMiB).value();
  }
  void TearDown() override {
    lease_ = Lease();
    client_.reset();
    ComponentTest::TearDown();
  }
  static Words AsJson(Words words) {
    words.insert(words.end(), {"--output", "json"});
    return words;
  }

  std::unique_ptr<Client> client_;
  Lease lease_;
};

TEST_F(CommandTest, EveryCommandAnswersInBothForms) {
  for (const Words& words :
       std::vector<Words>{{"status"},
                          {"tenant", "set", "b", "--guarantee", "10%",
                           "--limit", "50%", "--weight", "2"},
                          {"tenant", "get", "a"},
                          {"tenant", "list"},
                          {"session", "list"},
                          {"session", "list", "--tenant", "a"},
                          {"lease", "list"},
                          {"lease", "list", "--tenant", "b"},
                          {"why", "a"},
                          {"audit"},
                          {"audit", "--limit", "1"},
                          {"pool", "resize", "200MiB"},
                          {"pool", "drain"},
                          {"pool", "undrain"},
                          {"version"}}) {
    SCOPED_TRACE(words[0] + (words.size() > 1 ? " " + words[1] : ""));
    const Said table = Gmb(words);
    EXPECT_EQ(table.exit_code, 0) << table.err;
    EXPECT_FALSE(table.out.empty());
    EXPECT_EQ(table.err, "");
    const Said json = Gmb(AsJson(words));
    EXPECT_EQ(json.exit_code, 0) << json.err;
    EXPECT_TRUE(Json::accept(json.out)) << json.out;
  }
  EXPECT_EQ(Gmb({"tenant", "delete", "b"}).exit_code, 0);
  EXPECT_EQ(Gmb({"status", "--quiet"}).out, "");
  for (const std::string shell : {"bash", "zsh", "fish"})
    EXPECT_EQ(Gmb({"completion", shell}).exit_code, 0);
  // Whether all is well depends on the machine.
  const Said doctor = Gmb(AsJson({"doctor"}));
  EXPECT_LE(doctor.exit_code, 1);
  EXPECT_TRUE(Json::accept(doctor.out)) << doctor.out;
  EXPECT_THAT(Gmb({"doctor"}).out, HasSubstr("answers"));
}

TEST_F(CommandTest, WatchAndHoldPrintLinesUntilTheyAreInterrupted) {
  MakeTenant("w");
  for (const bool json : {false, true}) {
    SCOPED_TRACE(json);
    const Words watching = {"watch"};
    const auto watch = StartGmb("watch", json ? AsJson(watching) : watching);
    EXPECT_TRUE(Await([&] {
      ExpectServed("w");
      return !watch->Out().empty() || !watch->IsRunning();
    }));
    watch->Signal(SIGINT);
    EXPECT_EQ(watch->AwaitExit(), 0) << watch->Err();
    const Words held = {"hold", "--tenant", "a", "--bytes", "2MiB"};
    const auto hold = StartGmb("hold", json ? AsJson(held) : held);
    ASSERT_TRUE(hold->AwaitOut("holding")) << hold->Err();
    hold->Signal(SIGINT);
    EXPECT_EQ(hold->AwaitExit(), 0) << hold->Err();
    EXPECT_THAT(hold->Out(), HasSubstr("released"));
    if (!json) continue;
    for (const std::string& said : {watch->Out(), hold->Out()}) {
      std::istringstream lines(said);
      for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(Json::accept(line)) << line;
    }
  }
}

TEST_F(CommandTest, AWrongCommandLineExitsWith2) {
  for (const Words& words :
       std::vector<Words>{{"statu"},
                          {"status", "extra"},
                          {"status", "--output", "xml"},
                          {"tenant"},
                          {"tenant", "set"},
                          {"tenant", "set", "a", "--weight", "heavy"},
                          {"tenant", "set", "a", "--max-handles", "-1"},
                          {"tenant", "set", "a", "--uid", "root?"},
                          {"tenant", "get"},
                          {"tenant", "get", "a", "b"},
                          {"tenant", "list", "--all"},
                          {"tenant", "delete"},
                          {"session"},
                          {"session", "list", "--tenant"},
                          {"lease"},
                          {"lease", "list", "x"},
                          {"pool"},
                          {"pool", "resize"},
                          {"pool", "resize", "-1"},
                          {"pool", "resize", "150%"},
                          {"pool", "drain", "now"},
                          {"why"},
                          {"audit", "--limit", "-1"},
                          {"hold"},
                          {"hold", "--bytes", "2MiB", "--count", "0"},
                          {"hold", "--bytes", "2MiB", "--fill", "0x100"},
                          {"hold", "--bytes", "2MiB", "--for", "soon"},
                          {"hold", "--bytes", "2MiB", "--contents", "some"},
                          {"demo", "--bogus"},
                          {"completion", "tcsh"},
                          {"doctor", "who"},
                          {"watch", "out"},
                          {"version", "2"}}) {
    const Said said = Gmb(words);
    EXPECT_EQ(said.exit_code, 2) << words.back() << ": " << said.err;
    EXPECT_EQ(said.out, "") << words.back();
    EXPECT_FALSE(said.err.empty());
  }
}

TEST_F(CommandTest, WhatTheBrokerRefusesExitsWith1AndSaysWhy) {
  const struct {
    Words words;
    std::string reason;
  } cases[] = {
      {{"tenant", "get", "nobody"}, "NO_SUCH_TENANT"},
      {{"tenant", "delete", "nobody"}, "NO_SUCH_TENANT"},
      {{"tenant", "delete", "a"}, "BAD_STATE"},
      {{"tenant", "set", "b", "--guarantee", "90%"}, "OVERCOMMITTED"},
      {{"tenant", "set", "a", "--device", "GPU-0"}, "NO_SUCH_DEVICE"},
      {{"session", "list", "--tenant", "nobody"}, "NO_SUCH_TENANT"},
      {{"lease", "list", "--tenant", "nobody"}, "NO_SUCH_TENANT"},
      {{"why", "nobody"}, "NO_SUCH_TENANT"},
      {{"pool", "resize", "0"}, "BAD_REQUEST"},
      {{"pool", "resize", "1PiB"}, ""},
      {{"pool", "resize", "1TiB"}, "BAD_REQUEST"},
      {{"pool", "drain", "--device", "GPU-0"}, "NO_SUCH_DEVICE"},
      {{"hold", "--tenant", "a", "--bytes", "300MiB"}, "TENANT_LIMIT"},
      {{"hold", "--tenant", "nobody", "--bytes", "2MiB"}, ""},
  };
  for (const auto& refused : cases) {
    if (refused.reason.empty()) {
      EXPECT_NE(Gmb(refused.words).exit_code, 0);
      continue;
    }
    const Said said = Gmb(refused.words);
    EXPECT_EQ(said.exit_code, 1) << said.out << said.err;
    EXPECT_THAT(said.err, HasSubstr(refused.reason));
    const Said json = Gmb(AsJson(refused.words));
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(Json::parse(json.err)["error"]["reason"], refused.reason);
  }
}

TEST_F(CommandTest, WithoutABrokerTheyExitWith3) {
  for (const Words& words : std::vector<Words>{{"status"},
                                               {"status", "--quiet"},
                                               {"tenant", "list"},
                                               {"watch"},
                                               {"why", "a"},
                                               {"hold", "--bytes", "2MiB"}}) {
    Words elsewhere = {GMB_PROGRAM, "--socket-dir", Directory() + "/none"};
    elsewhere.insert(elsewhere.end(), words.begin(), words.end());
    Program gmb(Directory(), "gmb", elsewhere);
    EXPECT_EQ(gmb.AwaitExit(), 3) << words[0] << gmb.Err();
  }
}

TEST_F(CommandTest, ATenantIsDeletedOnceItsProcessesHaveEnded) {
  MakeTenant("b");
  const auto hold =
      StartGmb("hold", {"hold", "--tenant", "b", "--bytes", "2MiB"});
  ASSERT_TRUE(hold->AwaitOut("holding")) << hold->Err();
  EXPECT_EQ(Gmb({"tenant", "delete", "b"}).exit_code, 1);
  // It is asked to end, and does.
  const Said deleted = Gmb({"tenant", "delete", "b", "--wait", "60s"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  EXPECT_THAT(deleted.out, HasSubstr("deleted tenant b"));
  EXPECT_EQ(hold->AwaitExit(), 0) << hold->Err();
  EXPECT_THAT(hold->Out(), HasSubstr("released"));
  EXPECT_EQ(Gmb({"tenant", "get", "b"}).exit_code, 1);
}

TEST_F(CommandTest, AProcessThatDoesNotEndIsKilledOnlyWhereThatIsAllowed) {
  MakeTenant("b");
  const auto hold =
      StartGmb("hold", {"hold", "--tenant", "b", "--bytes", "2MiB"});
  ASSERT_TRUE(hold->AwaitOut("holding")) << hold->Err();
  hold->Signal(SIGSTOP);
  const Said refused = Gmb({"tenant", "delete", "b", "--wait", "100ms"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("BAD_STATE"));
  EXPECT_EQ(Gmb({"tenant", "set", "b", "--may-terminate", "yes"}).exit_code, 0);
  const Said deleted = Gmb({"tenant", "delete", "b", "--wait", "100ms"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  EXPECT_NE(hold->AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
