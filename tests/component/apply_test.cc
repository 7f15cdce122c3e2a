// Tenants that an operator's file declares beside the configuration file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "gmb/client.h"
#include "tests/component/filed_broker.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ApplyTest : public FiledBrokerTest {
 protected:
  void SetUp() override {
    Write("tenants:\n- {name: filed, limit: 75%}\n");
    Start();
  }
  CommandResult Apply(const std::string& tenants,
                      const std::vector<std::string>& more = {},
                      const std::string& name = "web") const {
    std::ofstream(directory_ / "apply.yaml") << "tenants: [" << tenants << "]";
    std::vector<std::string> words = {"apply", "-f", directory_ / "apply.yaml",
                                      "--name", name};
    words.insert(words.end(), more.begin(), more.end());
    return Gmb(words);
  }
  std::string Names() const { return Run({"tenant", "list", "--names"}); }
  std::string Audit() const { return Run({"audit", "--limit", "1"}); }
};

TEST_F(ApplyTest, AFileMakesChangesAndPrunesWhatItMadeAndNothingElse) {
  EXPECT_EQ(Gmb({"tenant", "set", "byhand", "--limit", "10%"}).exit_code, 0);
  const CommandResult made =
      Apply("{name: a, limit: 50%}, {name: b, guarantee: 25%}");
  EXPECT_EQ(made.exit_code, 0) << made.output;
  EXPECT_THAT(made.output, AllOf(HasSubstr("+ tenant a is new: limit 50%"),
                                 HasSubstr("+ tenant b is new"),
                                 HasSubstr("0 tenants unchanged")));
  EXPECT_EQ(Names(), "a\nb\nbyhand\nfiled\n");
  EXPECT_THAT(Run({"tenant", "get", "a"}), HasSubstr("apply web"));
  EXPECT_THAT(Audit(), AllOf(HasSubstr("apply"), HasSubstr("web")));

  EXPECT_THAT(Apply("{name: a, limit: 50%}, {name: b, guarantee: 25%}").output,
              AllOf(HasSubstr("2 tenants unchanged"), Not(HasSubstr("~"))));
  // Another name has made none of them.
  EXPECT_THAT(Apply("{name: c}", {}, "other").output, HasSubstr("+ tenant c"));

  const std::string next = "{name: a, limit: 50%, weight: 2}";
  const CommandResult dry = Apply(next, {"--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.output;
  EXPECT_THAT(dry.output, AllOf(HasSubstr("~ a: weight 1 -> 2"),
                                HasSubstr("- tenant b is gone")));
  EXPECT_EQ(Names(), "a\nb\nbyhand\nc\nfiled\n");
  EXPECT_EQ(Apply(next).exit_code, 1) << "a deletion is asked for";
  EXPECT_EQ(Apply(next, {"--yes"}).exit_code, 0);
  EXPECT_EQ(Names(), "a\nbyhand\nc\nfiled\n");

  Stop();
  Start();
  EXPECT_EQ(Names(), "a\nbyhand\nc\nfiled\n");
  EXPECT_THAT(Run({"tenant", "get", "a"}),
              ContainsRegex("weight +2 +apply web"));
}

TEST_F(ApplyTest, WhatTheConfigurationFileDeclaresIsRefusedWithoutForce) {
  const std::string tenants = "{name: a}, {name: filed, limit: 10%}";
  const CommandResult refused = Apply(tenants);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("filed is declared by the configuration file"),
                    HasSubstr("--force"),
                    HasSubstr("`gmb tenant list` shows who declares")));
  EXPECT_EQ(Names(), "filed\n") << "all of it, or nothing";
  EXPECT_THAT(Audit(), AllOf(HasSubstr("apply_refused"), HasSubstr("web"),
                             HasSubstr("filed is declared")));

  EXPECT_EQ(Apply(tenants, {"--force"}).exit_code, 0);
  EXPECT_THAT(Run({"tenant", "get", "filed"}),
              ContainsRegex("limit +10% +apply web.* 75%"));
  EXPECT_EQ(Apply("{name: a}", {}, "other").exit_code, 1)
      << "another apply's, too";
  // Withdrawn, the file's value holds again, and the tenant stays.
  EXPECT_EQ(Apply("{name: a}").exit_code, 0);
  EXPECT_THAT(Run({"tenant", "get", "filed"}),
              ContainsRegex("limit +75% +file"));
}

TEST_F(ApplyTest, WhatWasSetForATimeIsForGoodWhereTheFileSaysTheSame) {
  ASSERT_EQ(Apply("{name: a, limit: 50%}").exit_code, 0);
  Run({"tenant", "set", "a", "--limit", "80%", "--for", "1h"});
  const auto fields = [this] {
    return Run({"tenant", "get", "a", "--output", "json"});
  };
  EXPECT_THAT(fields(), HasSubstr("\"until\": \"2"));
  EXPECT_EQ(Apply("{name: a, limit: 80%}").exit_code, 0);
  EXPECT_THAT(fields(), Not(HasSubstr("\"until\": \"2")));
  EXPECT_THAT(Run({"tenant", "get", "a"}),
              ContainsRegex("limit +80% +apply web"));
}

TEST_F(ApplyTest, WhatItTakesFromProcessesIsSaidAndAskedFor) {
  ASSERT_EQ(Apply("{name: a}").exit_code, 0);
  ClientOptions options;
  options.socket_dir = directory_ / "run/tenants/a";
  auto client = Client::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  auto lease = (*client)->Acquire(64 << 20);
  ASSERT_TRUE(lease.ok()) << lease.status();

  const std::string less = "{name: a, limit: 16MiB}";
  EXPECT_THAT(Apply(less, {"--dry-run"}).output,
              HasSubstr("takes 48.00 MiB from its processes"));
  EXPECT_EQ(Apply(less).exit_code, 1);
  EXPECT_THAT(Run({"tenant", "get", "a"}), Not(HasSubstr("16.00 MiB")));
  EXPECT_EQ(Apply(less, {"--yes"}).exit_code, 0);
  EXPECT_THAT(Run({"tenant", "get", "a"}),
              HasSubstr("48.00 MiB over its limit"));
  const CommandResult gone = Apply("", {"--yes"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.output, HasSubstr("it has 1 processes"));
}

TEST_F(ApplyTest, GuaranteesAreSwappedInOneStepAndAnOvercommitChangesNothing) {
  ASSERT_EQ(Apply("{name: a, guarantee: 75%}, {name: b}").exit_code, 0);
  EXPECT_EQ(Apply("{name: a}, {name: b, guarantee: 75%}").exit_code, 0);
  const CommandResult over =
      Apply("{name: a, guarantee: 50%, weight: 2}, {name: b, guarantee: 75%}");
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_THAT(over.output, HasSubstr("OVERCOMMITTED"));
  EXPECT_THAT(Run({"tenant", "get", "a"}), Not(ContainsRegex("weight +2")));
}

TEST_F(ApplyTest, AFileThatIsWrongNamesTheLineAndOpensNothing) {
  EXPECT_THAT(Apply("{name: a, limit: lots}").output,
              AllOf(HasSubstr("web:1:"), HasSubstr("limit")));
  EXPECT_THAT(Apply("{name: a, token_file: /etc/hostname}").output,
              HasSubstr("token_file: this is the configuration file's alone"));
  EXPECT_THAT(Apply("{name: a}]\ndevices: [x").output, HasSubstr("devices"));
  EXPECT_THAT(Apply("{name: a, devices: {GPU-7: {limit: 10%}}}").output,
              AllOf(HasSubstr("tenant a: devices: the broker has no device"),
                    HasSubstr("reason: NO_SUCH_DEVICE")));
  EXPECT_EQ(Apply("{name: a}", {}, "../x").exit_code, 1);
  EXPECT_EQ(Apply("{name: a}", {"--if-revision", "99"}).exit_code, 1);
  EXPECT_EQ(Gmb({"apply", "-f", "/nonexistent", "--name", "x"}).exit_code, 1);
  EXPECT_EQ(Names(), "filed\n");
}

}  // namespace
}  // namespace gmb
