// A broker whose clients have taken every session that it has: operators come
// in all the same, and see that.
#include <signal.h>

#include <vector>

#include "gmb/error.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;
using FullBrokerTest = ComponentTest;

TEST_F(FullBrokerTest, ShutsItsOperatorsOutNeitherAtTheSocketNorInTheCommand) {
  BrokerOptions options;
  options.flags = {"--max-sessions", "3"};
  StartBroker(options);
  MakeTenant("a");
  std::vector<RawSession> sessions;
  for (int i = 0; i < 3; ++i) {
    auto session = RawSession::Open(TenantDir("a"));
    ASSERT_TRUE(session.ok()) << session.status();
    sessions.push_back(*std::move(session));
  }
  const absl::Status refused = RawSession::Open(TenantDir("a")).status();
  EXPECT_EQ(GetErrorDetail(refused).value_or(ErrorDetail()).reason,
            ErrorReason::kTooManySessions)
      << refused;
  const Said probe = Gmb({"status", "--quiet"});
  EXPECT_EQ(probe.exit_code, 0) << probe.err;
  EXPECT_EQ(Gmb({"status"}).exit_code, 0);
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
  const auto watch = StartGmb("watch", {"watch"});
  const Said doctor = Gmb({"doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("3 of 3 sessions are open"));
  uint64_t limit = 0;
  EXPECT_TRUE(Await([&] {  // it may come too late for the first changes
    MakeTenant("a", 0, limit += 2 * kMiB);
    return !watch->Out().empty();
  })) << watch->Err();
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->AwaitExit(), 0) << watch->Err();
}

// A process whose connection hangs up may be dying, and its memory is waited for;
// a session without any is over at once.
TEST_F(FullBrokerTest, PlaceOfASessionThatWasClosedIsFreeAtOnce) {
  StartBroker();
  MakeTenant("a");
  v1::SetTenantRequest request;
  request.set_name("a");
  request.set_max_sessions(1);
  ASSERT_TRUE(SetTenant(request).ok());
  for (int i = 0; i < 20; ++i) {
    ClientOptions options;
    options.socket_dir = TenantDir("a");
    const auto client = Client::Connect(options);
    ASSERT_TRUE(client.ok()) << i << ": " << client.status();
    auto lease = (*client)->Acquire(2 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    ASSERT_TRUE(std::move(*lease).Release().ok());
  }
}

}  // namespace
}  // namespace gmb::component
