// A thread that ends inside a handler of the application.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "client/session/trim_hook.h"
#include "gmb/client.h"
#include "tests/client/client_fixture.h"

namespace gmb {
namespace {

using v1::ClientMessage;

class ClientThreadEndTest : public test::ClientTest {
 protected:
  void SayWaiting(uint64_t request) {
    v1::BrokerMessage waiting;
    waiting.set_request_id(request);
    waiting.mutable_waiting()->set_ahead(1);
    broker().Say(waiting);
  }
};

TEST_F(ClientThreadEndTest, ItsCallIsForgottenAndTheSessionGoesOn) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().OnMessage([this](const ClientMessage& message) {
    if (!message.has_acquire()) return broker().Serve(message);
    SayWaiting(message.request_id());
  });
  std::thread ends([&client] {
    AcquireOptions options;
    options.wait = absl::Seconds(20);
    options.on_waiting = [](uint64_t) { pthread_exit(nullptr); };
    EXPECT_FALSE(client->Acquire(4 * kMiB, options).ok()) << "unreached";
  });
  ends.join();
  // The answer finds nobody, and the lease goes back.
  broker().OnMessage(
      [this](const ClientMessage& message) { broker().Serve(message); });
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_acquire()) broker().Serve(message);
  }
  EXPECT_TRUE(broker().WaitUntil([this] {
    const std::vector<ClientMessage> said = broker().messages();
    return std::any_of(said.begin(), said.end(), [](const auto& message) {
      return message.has_release();
    });
  }));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST_F(ClientThreadEndTest, AHandlerMayEndItsOwnThread) {
  StartBroker();
  std::promise<void> called;
  ClientOptions options = Options();
  options.on_budget_changed = [&called](const QuotaView&) {
    called.set_value();
    pthread_exit(nullptr);
  };
  const auto client = ConnectOrDie(std::move(options));
  v1::BrokerMessage budget;
  budget.mutable_budget_changed()->mutable_quota()->set_device("host-0");
  broker().Say(budget);
  called.get_future().wait();
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST(TrimHookThreadEndTest, AHandlerThatEndedItsThreadCanBeRemoved) {
  internal::TrimHook hook(nullptr);
  std::promise<void> called;
  hook.AddHandler(&hook,
                  [&called](const std::string&, uint64_t, absl::Duration) {
                    called.set_value();
                    pthread_exit(nullptr);
                  });
  v1::Trim trim;
  trim.set_trim(1);
  trim.mutable_within()->set_seconds(60);
  hook.OnTrim(trim, std::chrono::steady_clock::now());
  called.get_future().wait();
  hook.RemoveHandler(&hook);
  hook.Stop();
}

}  // namespace
}  // namespace gmb
