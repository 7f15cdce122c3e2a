// Sixty thousand leases of 2 MiB: what the broker can hold is granted, the rest
// is told why not, and all of it comes back.
#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"
#include "tests/sanitized.h"

namespace gmb::component {
namespace {

constexpr uint64_t kLeases = FewerIfSanitized(60'000);
constexpr uint64_t kGiB = 1024 * kMiB;

// Keeps the number of unanswered requests below what a session may have.
class Window {
 public:
  // False once there will be no more answers.
  bool Enter() {
    const base::MutexLock lock(&mu_);
    while (used_ >= 500 && !closed_) left_.Wait(&mu_);
    ++used_;
    return !closed_;
  }
  void Leave() {
    const base::MutexLock lock(&mu_);
    --used_;
    left_.NotifyAll();
  }
  void Close() {
    const base::MutexLock lock(&mu_);
    closed_ = true;
    left_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar left_;
  int used_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

class ManyLeasesTest : public ComponentTest {};

TEST_F(ManyLeasesTest, SixtyThousandSmallLeasesAreGrantedOrRefusedAndGoBack) {
  // Memory that nobody touches takes no room.
  BrokerOptions options;
  options.devices = {"host:120GiB"};
  // Two open files each: a hard limit (ulimit -Hn) of 125,000 lets all be held.
  options.flags = {"--max-handles", "65536", "--max-sessions", "16"};
  StartBroker(options);
  MakeTenant("b", 2 * kGiB);
  const uint64_t most = Status().max_handles() - 64;  // the rest for b
  v1::SetTenantRequest request;
  request.set_name("a");
  request.mutable_limit()->set_fraction(1);
  request.set_max_handles(static_cast<uint32_t>(most));
  ASSERT_TRUE(SetTenant(request).ok());
  const Footprint before = Settle();

  uint64_t granted = 0;
  uint64_t too_many = 0;
  uint64_t others = 0;
  v1::Error other;
  {
    RawSession session = RawSession::Open(TenantDir("a")).value();
    const auto stream = session.OpenStream(TenantDir("a"));
    std::thread acknowledger([&] {
      while (session.TakeSlabs().ok()) {
      }
    });
    Window window;
    std::thread reader([&] {
      for (uint64_t answers = 0; answers < kLeases;) {
        const auto message = stream->Receive();
        if (!message.has_value()) return window.Close();
        if (message->has_waiting()) continue;
        ++answers;
        window.Leave();
        if (message->has_grant()) {
          ++granted;
        } else if (message->error().detail().reason() == v1::TOO_MANY_HANDLES) {
          ++too_many;
        } else {
          ++others;
          other = message->error();
        }
      }
    });
    for (uint64_t id = 1; id <= kLeases; ++id) {
      if (!window.Enter()) break;
      if (!stream->Send(AcquireMessage(id, 2 * kMiB))) break;
    }
    reader.join();
    std::cout << granted << " leases of 2 MiB were held at once, of " << kLeases
              << " asked for\n";
    EXPECT_EQ(granted + too_many, kLeases);
    EXPECT_EQ(others, 0U) << other.DebugString();
    EXPECT_EQ(granted, std::min(most, kLeases));
    EXPECT_EQ(Status().leases(), granted);
    ExpectServed("b");
    session.socket.Shutdown();
    acknowledger.join();
  }
  ExpectServed("b");
  ExpectBackTo(before);
}

}  // namespace
}  // namespace gmb::component
