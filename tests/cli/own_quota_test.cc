// The quota as a tenant's own users see it: in its own directory, which pods
// mount, and without any operator's rights.
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class OwnQuotaTest : public RealBroker {
 protected:
  // With a's own directory as the socket directory, as in a pod.
  [[nodiscard]] Said InItsDirectory(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(),
                     {"--socket-dir", broker_->socket_dir() + "/tenants/a"});
    std::ostringstream out;
    std::ostringstream err;
    const ExitCode code = cli::Run(arguments, Terminal(), out, err);
    return {code, out.str(), err.str()};
  }
};

TEST_F(OwnQuotaTest, QuotaShowsTheTenantsOwn) {
  const Said said = Gmb({"quota", "--tenant", "a"});
  ASSERT_EQ(said.code, ExitCode::kOk) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("tenant a\n"), HasSubstr("host-0"),
                              HasSubstr("16.00 MiB"), HasSubstr("32.00 MiB")));
  const Json json = Gmb({"quota", "--tenant", "b", "--output", "json"}).json();
  EXPECT_EQ(json["tenant"], "b");
  EXPECT_EQ(json["quotas"][0]["limit_bytes"], 64 << 20);
}

TEST_F(OwnQuotaTest, InItsOwnDirectoryStatusAndDoctorSpeakOfTheTenant) {
  const Said status = InItsDirectory({"status"});
  EXPECT_EQ(status.code, ExitCode::kOk) << status.err;
  EXPECT_THAT(status.out, HasSubstr("tenant a\n"));
  EXPECT_EQ(InItsDirectory({"quota"}).out, status.out);
  EXPECT_EQ(InItsDirectory({"status", "--quiet", "--wait", "2m"}).code,
            ExitCode::kOk);
  const Said doctor = InItsDirectory({"doctor"});
  EXPECT_THAT(
      doctor.out,
      AllOf(HasSubstr("tenant a's own"), HasSubstr("can be had at once"),
            Not(HasSubstr("operators")), Not(HasSubstr("start gmbd"))));
}

TEST_F(OwnQuotaTest, InItsOwnDirectoryOperatorsCommandsNameWhatATenantHas) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"why", "a"}, {"tenant", "list"}, {"audit"}}) {
    const Said said = InItsDirectory(command);
    EXPECT_EQ(said.code, ExitCode::kFailed);
    EXPECT_THAT(said.err,
                AllOf(HasSubstr("for operators"), HasSubstr("`gmb quota`"),
                      Not(HasSubstr("start gmbd"))));
  }
}

TEST_F(OwnQuotaTest, WhatStandsInTheWayIsSaid) {
  ASSERT_EQ(
      Gmb({"tenant", "set", "a", "--guarantee", "0", "--limit", "0"}).code,
      ExitCode::kOk);
  EXPECT_THAT(InItsDirectory({"quota"}).out,
              HasSubstr("it holds as much as its limit"));
  EXPECT_THAT(InItsDirectory({"doctor"}).out, HasSubstr("as its limit"));
}

TEST_F(OwnQuotaTest, AMisspeltTenantIsNamed) {
  for (const char* const command : {"quota", "hold"}) {
    std::vector<std::string> words = {command, "--tenant", "bacth"};
    if (command == std::string("hold"))
      words.insert(words.end(), {"--bytes", "2MiB"});
    const Said said = Gmb(words);
    EXPECT_EQ(said.code, ExitCode::kFailed);
    EXPECT_THAT(said.err, AllOf(HasSubstr("the broker has no tenant bacth: "
                                          "correct the name"),
                                HasSubstr("NO_SUCH_TENANT")));
  }
}

}  // namespace
}  // namespace gmb::cli
