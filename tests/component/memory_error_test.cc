// A page of memory breaks while a broker copies it: that broker ends, and the
// next one gives up this lease alone.
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "tests/component/faulty_calls.h"
#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The library that plays the broken page; it cannot come before a sanitizer's.
class MemoryErrorTest : public RestartFixture {
 protected:
  void SetUp() override {
    if (kInstrumented) GTEST_SKIP();
    RestartFixture::SetUp();
    StartBroker(Options());
    MakeTenant("a");
    MakeTenant("b");
  }
  BrokerOptions WithBrokenInode(const std::string& inode) {
    BrokerOptions options = Options();
    options.wrapper = {"env", "LD_PRELOAD=" GMB_BROKEN_PAGE,
                       absl::StrCat("GMB_BROKEN_INODE=", inode)};
    return options;
  }
  BrokerOptions WithBrokenPageOf(const Lease& lease) {
    return WithBrokenInode(InodeAt(lease.data()));
  }
  // They suffice for the marks of an adoption and the journal, and no slab.
  BrokerOptions WithFewFds() {
    FaultPlan plan{};
    plan.call = FaultyCall::kDuplicate;
    plan.error = EMFILE;
    plan.first = 2;
    plan.count = 1000;
    const std::string file = Directory() + "/plan";
    std::ofstream(file).write(reinterpret_cast<const char*>(&plan),
                              sizeof(plan));
    BrokerOptions options = Options();
    options.wrapper = {"env", "LD_PRELOAD=" GMB_FAULTY_CALLS,
                       absl::StrCat(kFaultPlanVariable, "=", file)};
    return options;
  }
  // Of the running broker; it stays the same with a keeper.
  std::string HostPoolInode() {
    for (const absl::string_view line :
         absl::StrSplit(broker().FdNames(), '\n')) {
      if (!absl::StrContains(line, "gmb-host-pool")) continue;
      const std::pair<std::string, std::string> fd =
          absl::StrSplit(line, absl::MaxSplits(' ', 1));
      struct stat info {};
      const std::string path =
          absl::StrCat("/proc/", broker().program().pid(), "/fd/", fd.first);
      if (::stat(path.c_str(), &info) == 0) return absl::StrCat(info.st_ino);
    }
    ADD_FAILURE() << "no host pool among\n" << broker().FdNames();
    return "";
  }
  absl::Status AskToEvict(const std::string& tenant) {
    v1::ReclaimRequest request;
    request.set_tenant(tenant);
    request.set_bytes(10 * kMiB);
    request.mutable_wait()->set_seconds(30);
    return admin().Reclaim(request, absl::Seconds(60)).status();
  }
};

TEST_F(MemoryErrorTest, TheLeaseIsGivenUpAndNotCopiedAgain) {
  const auto client = Parked("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const auto other = Parked("b");
  auto goes_on = other->Acquire(10 * kMiB);
  ASSERT_TRUE(goes_on.ok()) << goes_on.status();
  {
    auto scope = other->Enter(absl::Seconds(30));
    ASSERT_TRUE(scope.ok()) << scope.status();
    Fill(*goes_on, 21);
  }
  const BrokerOptions broken = WithBrokenPageOf(*lease);
  KillBroker();
  StartBroker(broken);
  EXPECT_TRUE(client->status().ok()) << client->status();
  EXPECT_FALSE(AskToEvict("a").ok()) << "its broker dies of it";
  EXPECT_EQ(broker().program().AwaitExit(), 128 + SIGBUS) << broker().Log();
  EXPECT_THAT(broker().Log(), HasSubstr("cannot read a page of memory"));
  StartBroker(broken);
  EXPECT_THAT(
      broker().Log(),
      AllOf(HasSubstr(absl::StrCat("lease ", lease->id(), " of tenant a: ",
                                   "a page of memory was broken")),
            HasSubstr("session_not_adopted tenant=a")));
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  // The others' copies are made as ever.
  Evict("b", 10 * kMiB);
  {
    auto scope = other->Enter(absl::Seconds(60));
    ASSERT_TRUE(scope.ok()) << scope.status();
    EXPECT_TRUE(Holds(*goes_on, 21));
  }
  EXPECT_TRUE(std::move(*goes_on).Release().ok());
  ExpectServed("a");
  // And it was once: the next death is no fault of a lease.
  KillBroker();
  StartBroker(Options());
  EXPECT_THAT(broker().Log(), Not(HasSubstr("record_set_aside")));
  ExpectNothingIsLeft();
}

// A restore met the page, and the next start fails before its own journal: the
// contents are gone by then, and nobody may take zeros for them.
TEST_F(MemoryErrorTest, AStartThatFailsInBetweenLosesNoWordOfIt) {
  const auto client = Parked("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  {
    auto scope = client->Enter(absl::Seconds(30));
    ASSERT_TRUE(scope.ok()) << scope.status();
    Fill(*lease, 22);
  }
  Evict("a", 10 * kMiB);
  const auto other = ConnectAs("b");
  auto goes_on = other->Acquire(2 * kMiB);
  ASSERT_TRUE(goes_on.ok()) << goes_on.status();
  const BrokerOptions broken = WithBrokenInode(HostPoolInode());
  KillBroker();
  StartBroker(broken);
  // Its session outlives the broker that dies of the page.
  auto entered = std::async(std::launch::async, [&] {
    return client->Enter(absl::Seconds(60)).status();
  });
  EXPECT_EQ(broker().program().AwaitExit(), 128 + SIGBUS) << broker().Log();
  {
    BrokerProcess fails(Directory(), WithFewFds());
    EXPECT_EQ(fails.program().AwaitExit(), 1) << fails.Log();
    EXPECT_THAT(fails.Log(), AllOf(HasSubstr("a page of memory was broken"),
                                   HasSubstr("cannot duplicate a slab's fd")));
  }
  StartBroker(Options());
  EXPECT_THAT(
      broker().Log(),
      AllOf(HasSubstr(absl::StrCat("lease ", lease->id(), " of tenant a: ",
                                   "a page of memory was broken")),
            HasSubstr("session_not_adopted tenant=a")));
  EXPECT_FALSE(entered.get().ok());
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  EXPECT_TRUE(other->status().ok()) << other->status();
  EXPECT_TRUE(std::move(*goes_on).Release().ok());
  ExpectServed("a");
  ExpectNothingIsLeft();
}

// Somebody has sent it: no page is broken.
TEST_F(MemoryErrorTest, ASignalThatWasSentCostsNobodyALease) {
  const auto client = Parked("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  broker().program().Signal(SIGBUS);
  EXPECT_EQ(broker().program().AwaitExit(), 128 + SIGBUS);
  StartBroker(Options());
  EXPECT_TRUE(client->status().ok()) << client->status();
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gmb::component
