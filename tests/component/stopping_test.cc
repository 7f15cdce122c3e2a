// SIGTERM while peers keep the broker busy.
#include <signal.h>

#include <utility>

#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using StoppingTest = ComponentTest;

// Events that `gmb watch` does not read fill its connection, and gRPC waits for
// its writes.
TEST_F(StoppingTest, AnOperatorThatNeverReadsDoesNotKeepTheBrokerFromEnding) {
  constexpr int kRounds = 1000;  // of two events each
  StartBroker();
  MakeTenant("a");
  const auto watch = StartGmb("watch", {"watch"});
  ASSERT_TRUE(Await([&] {  // it does not say when it has begun to watch
    ExpectServed("a");
    return !watch->Out().empty();
  }));
  watch->Signal(SIGSTOP);
  auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < kRounds; ++i) {
    auto lease = client->Acquire(2 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    ASSERT_TRUE(std::move(*lease).Release().ok());
  }
  client.reset();
  StopBroker();
}

}  // namespace
}  // namespace gmb::component
