// A page of memory breaks while a broker copies it: that broker ends, and the
// next one gives up this lease alone.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>

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
  BrokerOptions WithBrokenPageOf(const Lease& lease) {
    BrokerOptions options = Options();
    options.wrapper = {
        "env", "LD_PRELOAD=" GMB_BROKEN_PAGE,
        absl::StrCat("GMB_BROKEN_INODE=", InodeAt(lease.data()))};
    return options;
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
