#include <csignal>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/views/list_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class SharedTest : public RealBroker {
 protected:
  std::vector<std::string> DeviceFlags() const override {
    return {"--device", "host:64MiB", "--host-pool", "64MiB"};
  }
  // Shares 8 MiB of tenant a as "llm", with the seed 7, until it is stopped.
  absl::StatusOr<ChildProcess> StartWriter(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"hold",    "--tenant",   "a",
                                      "--bytes", "8MiB",       "--seed",
                                      "7",       "--share-as", "llm"};
    words.insert(words.end(), more.begin(), more.end());
    absl::StatusOr<ChildProcess> hold = Start("writer", words);
    AwaitJson({"lease", "list"}, [](const Json& json) {
      return json["leases"].size() == 1 && json["leases"][0]["sealed"] == true;
    });
    return hold;
  }
  static std::vector<std::string> Attach(std::vector<std::string> more) {
    std::vector<std::string> words = {"hold", "--tenant", "a", "--attach",
                                      "llm",  "--for",    "0s"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
};

TEST_F(SharedTest, OneWritesAndAnotherReads) {
  absl::StatusOr<ChildProcess> writer = StartWriter();
  ASSERT_TRUE(writer.ok()) << writer.status();
  const Said reader = Gmb(Attach({"--seed", "7"}));
  EXPECT_EQ(reader.code, ExitCode::kOk) << reader.err;
  EXPECT_THAT(reader.out, AllOf(HasSubstr("to llm: 8.00 MiB on host-0"),
                                HasSubstr("verified"), HasSubstr("released")));
  const Said json = Gmb(Attach({"--output", "json"}));
  EXPECT_THAT(json.out, HasSubstr(R"("step":"attached","name":"llm")"));
  writer->Signal(SIGINT);
  EXPECT_EQ(writer->Wait(Soon()).value(), "exit code 0") << LogOf("writer");
  EXPECT_THAT(LogOf("writer"), HasSubstr("sealed"));
}

TEST_F(SharedTest, WhoExpectsAnotherPatternIsTold) {
  absl::StatusOr<ChildProcess> writer = StartWriter();
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ(Gmb(Attach({"--seed", "8"})).code, ExitCode::kWrongContents);
  EXPECT_EQ(Gmb(Attach({"--fill", "0xA5"})).code, ExitCode::kWrongContents);
}

TEST_F(SharedTest, WhatIsKeptShowsNoSessionOnceItsWriterHasGone) {
  absl::StatusOr<ChildProcess> writer = StartWriter({"--keep"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  writer->Signal(SIGKILL);
  AwaitJson({"session", "list"},
            [](const Json& json) { return json["sessions"].empty(); });
  const Json lease =
      Gmb({"lease", "list", "--output", "json"}).json()["leases"][0];
  EXPECT_EQ(lease["session_id"], 0);
  EXPECT_THAT(Gmb({"lease", "list"}).out,
              ContainsRegex(" a +- +host-0 .*0 attached, kept"));
}

TEST_F(SharedTest, TheListShowsWhoHasItAndDropEndsIt) {
  absl::StatusOr<ChildProcess> writer = StartWriter({"--keep"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_THAT(Gmb({"lease", "list"}).out,
              HasSubstr("shared as llm, 1 attached, kept"));
  const Json lease =
      Gmb({"lease", "list", "--output", "json"}).json()["leases"][0];
  EXPECT_EQ(lease["share_name"], "llm");
  EXPECT_EQ(lease["attached"], 1);
  EXPECT_EQ(lease["keep"], true);
  EXPECT_GT(lease["session_id"], 0);
  writer->Signal(SIGINT);
  EXPECT_EQ(writer->Wait(Soon()).value(), "exit code 0") << LogOf("writer");
  EXPECT_THAT(Gmb({"lease", "list"}).out, HasSubstr("0 attached, kept"));
  const Said dropped = Gmb({"lease", "drop", "--tenant", "a", "llm"});
  EXPECT_EQ(dropped.code, ExitCode::kOk) << dropped.err;
  EXPECT_EQ(dropped.out,
            "dropped llm of tenant a: no session had it, so it is gone\n");
  EXPECT_EQ(Gmb({"lease", "list"}).out, "no leases\n");
  const Said again = Gmb({"lease", "drop", "--tenant", "a", "llm"});
  EXPECT_EQ(again.code, ExitCode::kFailed);
  EXPECT_THAT(again.err, HasSubstr("NO_SUCH_LEASE"));
}

TEST_F(SharedTest, ADropThatOthersOutliveSaysSo) {
  absl::StatusOr<ChildProcess> writer = StartWriter();
  ASSERT_TRUE(writer.ok()) << writer.status();
  const Said dropped =
      Gmb({"lease", "drop", "--tenant", "a", "llm", "--output", "json"});
  EXPECT_EQ(dropped.json()["attached"], 1);
  EXPECT_EQ(Gmb(Attach({})).code, ExitCode::kFailed);
}

TEST_F(SharedTest, ANameThatIsTakenOrUnknownIsRefusedWithItsReason) {
  absl::StatusOr<ChildProcess> writer = StartWriter();
  ASSERT_TRUE(writer.ok()) << writer.status();
  const Said taken = Gmb({"hold", "--tenant", "a", "--bytes", "2MiB",
                          "--share-as", "llm", "--for", "0s"});
  EXPECT_EQ(taken.code, ExitCode::kFailed);
  EXPECT_THAT(taken.err, HasSubstr("NAME_TAKEN"));
  const Said unknown =
      Gmb({"hold", "--tenant", "a", "--attach", "other", "--for", "0s"});
  EXPECT_EQ(unknown.code, ExitCode::kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("NO_SUCH_LEASE"));
}

TEST_F(SharedTest, WhyNamesWhoWaitsToAttachAndOnWhom) {
  absl::StatusOr<ChildProcess> holder =
      Start("holder", {"hold", "--tenant", "b", "--bytes", "40MiB"});
  ASSERT_TRUE(holder.ok()) << holder.status();
  AwaitJson({"lease", "list"},
            [](const Json& json) { return json["leases"].size() == 1; });
  absl::StatusOr<ChildProcess> writer =
      Start("writer", {"hold", "--tenant", "a", "--bytes", "32MiB",
                       "--share-as", "llm", "--wait", "30s"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  AwaitJson({"why", "a"},
            [](const Json& json) { return json["waiting"].size() == 1; });
  absl::StatusOr<ChildProcess> reader =
      Start("reader", Attach({"--wait", "30s"}));
  ASSERT_TRUE(reader.ok()) << reader.status();
  AwaitJson({"why", "a"}, [](const Json& json) {
    return json["attaching"].size() == 1 &&
           json["attaching"][0]["share_name"] == "llm" &&
           json["attaching"][0]["waits_for"] == "MEMORY" &&
           json["attaching"][0]["on_session_id"] ==
               json["waiting"][0]["session_id"];
  });
  EXPECT_THAT(
      Gmb({"why", "a"}).out,
      AllOf(HasSubstr("waiting session"), HasSubstr("attaching session"),
            HasSubstr("its writer's memory"),
            HasSubstr("1 Attach waits for the shared lease llm")));
  holder->Signal(SIGINT);
  EXPECT_EQ(reader->Wait(Soon()).value(), "exit code 0") << LogOf("reader");
  EXPECT_EQ(Gmb({"why", "a", "--output", "json"}).json()["attaching"].size(),
            0u);
  writer->Signal(SIGINT);
  EXPECT_EQ(writer->Wait(Soon()).value(), "exit code 0") << LogOf("writer");
  EXPECT_EQ(holder->Wait(Soon()).value(), "exit code 0") << LogOf("holder");
}

TEST_F(SharedTest, OptionsThatDoNotGoTogetherAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {"hold", "--tenant", "a"},
      {"hold", "--attach", "x", "--bytes", "1"},
      {"hold", "--attach", "x", "--share-as", "y"},
      {"hold", "--attach", "x", "--contents", "discard"},
      {"hold", "--attach", ""},
      {"hold", "--bytes", "1", "--keep"},
      {"hold", "--bytes", "1", "--share-as", "x", "--count", "2"},
      {"lease", "drop", "llm"},
      {"lease", "drop", "--tenant", "a"}};
  for (const std::vector<std::string>& words : wrong) {
    const Said said = Gmb(words);
    EXPECT_EQ(said.code, ExitCode::kUsage) << words[1] << said.out << said.err;
  }
  EXPECT_THAT(Gmb({"hold", "--tenant", "a"}).err, HasSubstr("--attach"));
}

}  // namespace
}  // namespace gmb::cli
