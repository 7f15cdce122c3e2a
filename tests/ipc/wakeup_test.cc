#include "ipc/wakeup.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace gmb::ipc {
namespace {

bool Readable(const Wakeup& wakeup, int wait_ms) {
  pollfd entry{.fd = wakeup.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

TEST(WakeupTest, IsReadableFromNotifyToClear) {
  absl::StatusOr<Wakeup> wakeup = Wakeup::Create();
  ASSERT_TRUE(wakeup.ok());
  EXPECT_FALSE(Readable(*wakeup, 0));
  wakeup->Notify();
  wakeup->Notify();
  EXPECT_TRUE(Readable(*wakeup, 0));
  wakeup->Clear();
  EXPECT_FALSE(Readable(*wakeup, 0));
  wakeup->Clear();  // of nothing: does not block
}

TEST(WakeupTest, WakesAThreadThatWaits) {
  absl::StatusOr<Wakeup> wakeup = Wakeup::Create();
  ASSERT_TRUE(wakeup.ok());
  std::thread waker([&] { wakeup->Notify(); });
  EXPECT_TRUE(Readable(*wakeup, 30'000));
  waker.join();
}

}  // namespace
}  // namespace gmb::ipc
