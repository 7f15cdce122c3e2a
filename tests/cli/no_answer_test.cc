#include "client/cli/no_answer.h"

#include "client/cli/error_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(NoAnswerTest, WhereNobodyListensItSaysHowToStartABroker) {
  const absl::Status status =
      NoBroker(absl::UnavailableError("gmb: nobody listens"), "/run/gmb");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotReachable);
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("start gmbd with --socket-dir /run/gmb"),
                    HasSubstr("(nobody listens)")));
}

TEST(NoAnswerTest, ABrokerThatIsSilentIsNamedWithWhatToDo) {
  const absl::Status raw = absl::DeadlineExceededError("Deadline Exceeded");
  for (const absl::Status& status :
       {NoBroker(raw, "/d"), NoBrokerForOperators(raw, "/d"),
        LostBroker(raw, "/d")}) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotReachable);
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr("the broker in /d is there but does not "
                                "answer"),
                      HasSubstr("restart it")));
  }
}

TEST(NoAnswerTest, ACallThatTheBrokersEndCutsOffSaysThatItStops) {
  for (const absl::Status& raw : {absl::CancelledError("Cancelling all calls"),
                                  absl::UnavailableError("Socket closed"),
                                  absl::UnknownError("Stream removed")}) {
    const absl::Status status = LostBroker(raw, "/d");
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotReachable) << raw;
    EXPECT_THAT(Message(status), HasSubstr("has stopped or is stopping"));
  }
}

TEST(NoAnswerTest, ABrokerThatLivesIsNotSaidToHaveStopped) {
  const absl::Status full = absl::DeadlineExceededError("no connection");
  const absl::Status greeted =
      absl::UnavailableError("gmb: not reached; the session lives, try again");
  for (const absl::Status& status :
       {CrowdedBroker(full, "/d"), NoBroker(greeted, "/d")}) {
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotReachable);
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr("the broker in /d is there"),
                      HasSubstr("crowded"), Not(HasSubstr("start gmbd"))));
  }
  const absl::Status broken = absl::UnavailableError("Socket closed");
  EXPECT_TRUE(LooksStopped(broken));
  EXPECT_FALSE(LooksStopped(full));
  const absl::Status status = LostConnection(broken, "/d");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotReachable);
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("is there"), HasSubstr("(Socket closed)"),
                    Not(HasSubstr("stop"))));
}

TEST(NoAnswerTest, OnlyOperatorsReachTheirSocket) {
  const absl::Status raw = absl::PermissionDeniedError("can not connect");
  EXPECT_THAT(Message(NoBrokerForOperators(raw, "/d")),
              HasSubstr("owner of /d/admin or in its group"));
  EXPECT_TRUE(absl::IsPermissionDenied(NoBroker(raw, "/d")));
}

TEST(NoAnswerTest, OtherErrorsStayAsTheyAre) {
  const absl::Status other = absl::InternalError("a protocol error");
  EXPECT_EQ(NoBroker(other, "/d"), other);
  EXPECT_EQ(LostBroker(other, "/d"), other);
  EXPECT_EQ(LostBroker(absl::UnknownError("x"), "/d"), absl::UnknownError("x"));
  EXPECT_TRUE(LostBroker(absl::OkStatus(), "/d").ok());
}

}  // namespace
}  // namespace gmb::cli
