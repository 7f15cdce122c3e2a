// The owner of a tenant's directory puts links where the broker makes sockets:
// what they lead to is not touched, and others are served.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/attack/attack_fixture.h"

namespace gmb::attack {
namespace {

constexpr unsigned kOwner = 64'323;
constexpr int kMany = 10;  // in the order of their names

class LinksTest : public AttackTest {
 protected:
  void SetUp() override {
    if (::getuid() != 0)
      GTEST_SKIP() << "only root runs processes of another user";
    victim_ = Directory() + "/victim";
    std::ofstream(victim_) << "untouched";
    ASSERT_EQ(::chmod(victim_.c_str(), 0600), 0);
    ASSERT_EQ(::chmod(Directory().c_str(), 0755), 0);
    options_.config = "tenants:\n";
    for (const std::string& tenant : Mallorys()) {
      absl::StrAppend(&options_.config, "  - {name: ", tenant,
                      ", socket: {owner: ", kOwner, "}}\n");
    }
    StartBroker(options_);
    for (const std::string tenant : {"honest", "other"}) MakeTenant(tenant);
  }

  // One that is deleted and made anew, and many whose sockets are made at once.
  static std::vector<std::string> Mallorys() {
    std::vector<std::string> names = {"mallory"};
    for (int i = 0; i < kMany; ++i) names.push_back(absl::StrCat("m", i));
    return names;
  }

  void ExpectUntouched() {
    struct stat victim {};
    ASSERT_EQ(::lstat(victim_.c_str(), &victim), 0);
    EXPECT_EQ(victim.st_mode, S_IFREG | 0600U);
    EXPECT_EQ(victim.st_uid, 0U);
    EXPECT_EQ(victim.st_nlink, 1U);
    std::ifstream file(victim_);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
              "untouched");
    struct stat admin {};
    ASSERT_EQ(::lstat((SocketDir() + "/admin").c_str(), &admin), 0);
    EXPECT_EQ(admin.st_mode, S_IFDIR | 0700U);
  }

  BrokerOptions options_;
  std::string victim_;
};

TEST_F(LinksTest, InATenantsDirectoryLeadTheBrokerNowhere) {
  const auto attacker = StartAttacker(
      {"link_races", "--uid", absl::StrCat(kOwner), "--path", victim_});
  ASSERT_TRUE(attacker->AwaitOut("attacking")) << attacker->Err();
  for (int restart = 0; restart < 2; ++restart) {
    for (int i = 0; i < 3; ++i) {
      const std::string tenant = absl::StrCat("temporary", i);
      EXPECT_EQ(Gmb({"tenant", "set", tenant}).exit_code, 0);
      ExpectServed(tenant);
      EXPECT_TRUE(Await([&] {  // once its client has gone
        return Gmb({"tenant", "delete", tenant}).exit_code == 0;
      }));
      // Its own directory may be too odd to be removed, or to be made anew.
      (void)Gmb({"tenant", "delete", "mallory"});
      (void)Gmb({"tenant", "set", "mallory"});
      ExpectServed("honest");
    }
    ExpectUntouched();
    StopBroker();
    StartBroker(options_);
    ExpectServed("honest");
  }
  EXPECT_TRUE(attacker->IsRunning()) << attacker->Err();
  Stop(*attacker);
  ExpectUntouched();
  // Its directory is what it made of it; but no half of a door that could not
  // be opened is in the way of the next try.
  (void)Gmb({"tenant", "delete", "mallory"});
  EXPECT_THAT(Gmb({"tenant", "set", "mallory"}).err,
              ::testing::Not(::testing::HasSubstr("listens here")));
}

// At the moment at which the broker has made a socket and not yet opened it to
// others.
TEST_F(LinksTest, AtTheMomentASocketIsMadeLeadTheBrokerNowhere) {
  StopBroker();
  const auto attacker =
      StartAttacker({"link_ambush", "--uid", absl::StrCat(kOwner), "--path",
                     victim_, "--connections", absl::StrCat(kMany)},
                    SocketDir() + "/tenants/m");
  ASSERT_TRUE(attacker->AwaitOut("attacking")) << attacker->Err();
  for (int restart = 0; restart < 5; ++restart) {
    StartBroker(options_);
    ExpectServed("honest");
    ExpectUntouched();
    StopBroker();
  }
  StartBroker(options_);
  EXPECT_TRUE(attacker->IsRunning()) << attacker->Err();
  Stop(*attacker);
  EXPECT_THAT(attacker->Out(), ::testing::HasSubstr("ambushed="));
}

}  // namespace
}  // namespace gmb::attack
