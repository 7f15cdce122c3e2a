// Processes that take themselves for others: by a token, by a pid, by what
// another one left them, and by a uid that two tenants share.
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/attack/attack_fixture.h"
#include "tests/component/raw_session.h"

namespace gmb::attack {
namespace {

using component::AcquireMessage;
using component::kMiB;
using component::RawSession;
using component::ReleaseMessage;
using ::testing::HasSubstr;
using ::testing::Not;

class IdentitiesTest : public AttackTest {};

TEST_F(IdentitiesTest, NeitherGuessedNorStolenTokensOpenAnything) {
  Start();
  RawSession owner = RawSession::Open(TenantDir("other")).value();
  const auto stream = owner.OpenStream(TenantDir("other"));
  ASSERT_TRUE(stream->Send(AcquireMessage(1, 4 * kMiB)));
  const auto grant = stream->ReceiveAnswer(1);
  ASSERT_TRUE(grant.has_value() && grant->has_grant());
  ASSERT_TRUE(owner.TakeSlabs().ok());

  const std::vector<std::string> words = {
      "guessing", "--greet", "--token",
      absl::BytesToHexString(owner.welcome.token())};
  // Of another tenant, and of another process of the same one.
  const auto stranger = StartAttacker(words);
  const auto sibling = StartAttacker(words, TenantDir("other"));
  ServeDuring(*stranger, 1);
  for (Program* attacker : {stranger.get(), sibling.get()}) {
    Stop(*attacker);
    EXPECT_THAT(attacker->Out(), HasSubstr("no_such_lease="));
    EXPECT_THAT(attacker->Out(), Not(HasSubstr("guessed=")));
    EXPECT_THAT(attacker->Out(), Not(HasSubstr("stolen=")));
    EXPECT_THAT(attacker->Out(), Not(HasSubstr("released=")));
  }
  ASSERT_TRUE(stream->Send(ReleaseMessage(2, grant->grant().lease_id())));
  const auto released = stream->ReceiveAnswer(2);
  EXPECT_TRUE(released.has_value() && released->has_released());
}

TEST_F(IdentitiesTest, NobodyIsWelcomedInAnothersName) {
  Start();
  const auto attacker =
      StartAttacker({"borrowed_identity", "--pid", absl::StrCat(::getpid())});
  ServeDuring(*attacker, 1);
  Stop(*attacker);
  EXPECT_THAT(attacker->Out(), HasSubstr("child_refused="));
  EXPECT_THAT(attacker->Out(), Not(HasSubstr("welcomed=")));
  if (::getuid() == 0) {  // others cannot even say it
    EXPECT_THAT(attacker->Out(), HasSubstr("pid_refused="));
    EXPECT_THAT(attacker->Out(), HasSubstr("uid_refused="));
  }
  ExpectCalmAgain();
}

TEST_F(IdentitiesTest, WhatADeadProcessLeavesIsWorthNothing) {
  for (const Kernel kernel : {Kernel::kNewest, Kernel::kNoPassRightsNoPidfd}) {
    SCOPED_TRACE(kernel);
    Start(kernel);
    const auto attacker = StartAttacker({"passed_on"});
    ServeDuring(*attacker, 1);
    EXPECT_TRUE(attacker->AwaitOut(" ended="));
    Stop(*attacker);
    EXPECT_THAT(attacker->Out(), Not(HasSubstr("answered_to_the_heir=")));
    EXPECT_THAT(attacker->Out(), Not(HasSubstr("not_ended=")));
    ExpectCalmAgain();
    TearDown();
  }
}

TEST_F(IdentitiesTest, WhatWasSaidOnceIsRefusedTheSecondTime) {
  for (const Kernel kernel : {Kernel::kNewest, Kernel::kNoPassRightsNoPidfd}) {
    SCOPED_TRACE(kernel);
    Start(kernel);
    const auto attacker = StartAttacker({"replays"});
    ServeDuring(*attacker, 3);
    for (const std::string well : {" greeting_refused=", " hello_refused=",
                                   " ack_refused=", " token_refused="}) {
      EXPECT_TRUE(attacker->AwaitOut(well)) << well;
    }
    Stop(*attacker);
    for (const std::string ill :
         {"greeted_again=", "not_ended=", "slabs_again=", "leased=",
          "answered=", "bytes_of_others="}) {
      EXPECT_THAT(attacker->Out(), Not(HasSubstr(ill)));
    }
    ExpectCalmAgain();
    ExpectAllReturned();
    TearDown();
  }
}

TEST_F(IdentitiesTest, BorrowersOfASessionsSocketsActForItsOwner) {
  for (const Kernel kernel : {Kernel::kNewest, Kernel::kNoPassRightsNoPidfd}) {
    SCOPED_TRACE(kernel);
    Start(kernel);
    const auto attacker =
        StartAttacker({"lent_sockets", "--other-dir", TenantDir("other")});
    ServeDuring(*attacker, 1);
    EXPECT_TRUE(attacker->AwaitOut(" ended_by_breach="));
    EXPECT_TRUE(attacker->AwaitOut(" ended_by_death="));
    Stop(*attacker);
    for (const std::string well :
         {"served_as_lender=", "leased=", "own_session_lives="}) {
      EXPECT_THAT(attacker->Out(), HasSubstr(well));
    }
    for (const std::string ill :
         {"served_as_itself=", "own_token_served=", "stolen=", "not_ended=",
          "own_session_lost=", "not_lent=", "not_served="}) {
      EXPECT_THAT(attacker->Out(), Not(HasSubstr(ill)));
    }
    ExpectCalmAgain();
    ExpectAllReturned();
    TearDown();
  }
}

// An ordinary user's, who may enter both tenants' directories.
constexpr unsigned kUser = 64'322;

TEST_F(IdentitiesTest, TwoTenantsOfOneUidLockEachOtherOutOfNothing) {
  if (::getuid() != 0)
    GTEST_SKIP() << "only root runs processes of another user";
  BrokerOptions options;
  options.config = "tenants:\n";
  for (const std::string name : {"mallory", "honest"}) {
    absl::StrAppend(&options.config, "  - {name: ", name,
                    ", socket: {owner: ", kUser, "}}\n");
  }
  ASSERT_EQ(::chmod(Directory().c_str(), 0755), 0);
  Start(Kernel::kNewest, options, kUser);
  const std::string uid = absl::StrCat(kUser);
  std::vector<std::unique_ptr<Program>> attackers;
  for (const std::string socket : {"handle.sock", "gmb.sock"}) {
    attackers.push_back(
        StartAttacker({"fast_connects", "--keep", "--rate", "5000", "--socket",
                       socket, "--uid", uid}));
  }
  attackers.push_back(
      StartAttacker({"unknown_token_calls", "--greet", "--uid", uid}));
  attackers.push_back(StartAttacker({"guessing", "--greet", "--uid", uid}));
  ServeDuring(*attackers.back(), 1);
  for (const auto& attacker : attackers) Stop(*attacker);
  EXPECT_THAT(attackers.back()->Out(), Not(HasSubstr("released=")));
  ExpectCalmAgain();
}

}  // namespace
}  // namespace gmb::attack
