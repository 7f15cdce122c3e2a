// The broker asks for what a program could spare.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "gmb/heap.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using v1::ClientMessage;

class ClientTrimTest : public test::ClientGateTest {
 protected:
  void Trim(uint64_t trim, uint64_t bytes, int64_t seconds,
            const std::string& device = "host-0") {
    v1::BrokerMessage message;
    message.mutable_trim()->set_trim(trim);
    message.mutable_trim()->set_device(device);
    message.mutable_trim()->set_bytes(bytes);
    message.mutable_trim()->mutable_within()->set_seconds(seconds);
    broker().Say(message);
  }
  // The answers to one trim so far: '.' or, if the client was busy, 'b'.
  std::string Answers(uint64_t trim) {
    std::string answers;
    for (const ClientMessage& message : broker().messages()) {
      if (message.has_trimmed() && message.trimmed().trim() == trim)
        answers += message.trimmed().busy() ? 'b' : '.';
    }
    return answers;
  }
  bool AwaitAnswers(uint64_t trim, const std::string& wanted) {
    return broker().WaitUntil([&] { return Answers(trim) == wanted; });
  }
};

TEST_F(ClientTrimTest, WithoutAHandlerTheAnswerComesAtOnce) {
  StartBroker();
  const auto client = ConnectOrDie();
  Trim(1, kMiB, 60);
  EXPECT_TRUE(AwaitAnswers(1, "."));
}

TEST_F(ClientTrimTest, TheHandlerReleasesBeforeTheAnswer) {
  StartBroker();
  std::mutex cache_mu;  // the hook has a thread of its own
  std::vector<Lease> cache;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string& device, uint64_t bytes,
                        absl::Duration within) {
    const std::lock_guard<std::mutex> lock(cache_mu);
    EXPECT_EQ(device, "host-0");
    EXPECT_EQ(bytes, 6 * kMiB);
    EXPECT_GT(within, absl::Seconds(30));
    EXPECT_LE(within, absl::Seconds(60));
    cache.clear();
    throw std::runtime_error("dropped");
  };
  const auto client = ConnectOrDie(std::move(options));
  for (int i = 0; i < 3; ++i) {
    const std::lock_guard<std::mutex> lock(cache_mu);
    cache.push_back(*client->Acquire(2 * kMiB));
  }
  Trim(1, 6 * kMiB, 60);
  ASSERT_TRUE(AwaitAnswers(1, "."));
  int releases = 0;
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_trimmed()) break;
    if (message.has_release()) ++releases;
  }
  EXPECT_EQ(releases, 3);
  Trim(2, 6 * kMiB, 60);
  EXPECT_TRUE(AwaitAnswers(2, ".")) << "after it has thrown, too";
}

TEST_F(ClientTrimTest, ALateHandlerIsBusyOnceAndNotCalledAgainUntilItIsBack) {
  StartBroker();
  std::atomic<int> calls = 0;
  std::atomic<bool> go_on = false;
  std::atomic<uint64_t> last_bytes = 0;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string&, uint64_t bytes, absl::Duration) {
    last_bytes = bytes;
    ++calls;
    go_on.wait(false);
  };
  const auto client = ConnectOrDie(std::move(options));
  Trim(1, 1, 60);
  ASSERT_TRUE(broker().WaitUntil([&] { return calls == 1; }));
  Trim(2, 2, 0);
  EXPECT_TRUE(AwaitAnswers(2, "b")) << "its time is over";
  EXPECT_EQ(Answers(1), "");
  Trim(3, 3, 60);
  Trim(4, 4, 60);
  ASSERT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(calls, 1);
  go_on = true;
  go_on.notify_all();
  EXPECT_TRUE(AwaitAnswers(1, ".") && AwaitAnswers(3, ".") &&
              AwaitAnswers(4, "."));
  EXPECT_EQ(calls, 2) << "once for those that waited";
  EXPECT_EQ(last_bytes, 4U) << "as the newest said";
  EXPECT_EQ(Answers(2), "b");
}

// The broker has forgotten what could be trimmed, and asks no second time.
TEST_F(ClientTrimTest, WhatIsAnsweredBusyIsCalledForAllTheSame) {
  StartBroker();
  std::atomic<bool> go_on = false;
  std::atomic<uint64_t> last_bytes = 0;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string&, uint64_t bytes, absl::Duration) {
    last_bytes = bytes;
    go_on.wait(false);
  };
  const auto client = ConnectOrDie(std::move(options));
  Trim(1, 1, 60);
  ASSERT_TRUE(broker().WaitUntil([&] { return last_bytes == 1; }));
  Trim(2, 2, 0, "host-1");
  Trim(3, 3, 0, "host-1");
  EXPECT_TRUE(AwaitAnswers(2, "b") && AwaitAnswers(3, "b"));
  go_on = true;
  go_on.notify_all();
  EXPECT_TRUE(broker().WaitUntil([&] { return last_bytes == 3; }));
  EXPECT_TRUE(AwaitAnswers(1, "."));
  EXPECT_EQ(Answers(2) + Answers(3), "bb") << "each once";
}

TEST_F(ClientTrimTest, TheDeadlineOfARunningHandlerIsKept) {
  StartBroker();
  std::atomic<bool> go_on = false;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string&, uint64_t, absl::Duration) {
    go_on.wait(false);
  };
  const auto client = ConnectOrDie(std::move(options));
  Trim(1, 1, 1);
  EXPECT_TRUE(AwaitAnswers(1, "b"));
  go_on = true;
  go_on.notify_all();
  Trim(2, 1, 60);
  EXPECT_TRUE(AwaitAnswers(2, "."));
  EXPECT_EQ(Answers(1), "b") << "once";
}

TEST_F(ClientTrimTest, ABrokerThatNeverStopsAskingIsAnsweredBusy) {
  StartBroker();
  std::atomic<bool> go_on = false;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string&, uint64_t, absl::Duration) {
    go_on.wait(false);
  };
  auto client = ConnectOrDie(std::move(options));
  for (uint64_t trim = 1; trim <= 100; ++trim) Trim(trim, 1, 600);
  EXPECT_TRUE(AwaitAnswers(100, "b"));
  EXPECT_EQ(Answers(2), "");
  go_on = true;
  go_on.notify_all();
  EXPECT_TRUE(AwaitAnswers(2, "."));
}

TEST_F(ClientTrimTest, AClientMayBeDestroyedInsideItsOwnHandler) {
  StartBroker();
  std::unique_ptr<Client> client;
  std::atomic<bool> connected = false;
  std::atomic<bool> destroyed = false;
  ClientOptions options = Options();
  options.on_trim = [&](const std::string&, uint64_t, absl::Duration) {
    connected.wait(false);
    client.reset();
    destroyed = true;
    destroyed.notify_all();
  };
  client = ConnectOrDie(std::move(options));
  connected = true;
  connected.notify_all();
  Trim(1, 1, 60);
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().open_sessions() == 0; }));
  destroyed.wait(false);
}

TEST_F(ClientTrimTest, LeasesThatOutliveTheClientAnswerAsIfThereWasNoHandler) {
  StartBroker();
  ClientOptions options = Options();
  options.on_trim = [](const std::string&, uint64_t, absl::Duration) {
    ADD_FAILURE() << "after ~Client";
  };
  auto client = ConnectOrDie(std::move(options));
  const Lease lease = *client->Acquire(2 * kMiB);
  client.reset();
  Trim(1, 1, 60);
  EXPECT_TRUE(AwaitAnswers(1, "."));
}

TEST_F(ClientTrimTest, AHeapWaitsForOneAnswerHoweverManyLeasesItGivesBack) {
  constexpr int kLeases = 3;
  StartBroker();
  const auto client = ConnectOrDie();
  HeapOptions options;
  options.least_growth_bytes = options.most_growth_bytes = 2 * kMiB;
  options.trim = false;
  const auto heap = *Heap::Create(client.get(), options);
  std::vector<void*> blocks;
  for (int i = 0; i < kLeases; ++i)
    blocks.push_back(*heap->Allocate(2 * kMiB, nullptr));
  for (void* block : blocks) ASSERT_TRUE(heap->Free(block).ok());
  ASSERT_EQ(heap->statistics().leases, uint64_t{kLeases});

  std::mutex mu;  // the broker's thread, and this one
  std::vector<ClientMessage> unanswered;
  std::counting_semaphore<> heard(0);
  On(ClientMessage::kRelease, [&](const ClientMessage& message) {
    const std::lock_guard<std::mutex> lock(mu);
    unanswered.push_back(message);
    heard.release();
  });
  std::atomic<uint64_t> given = 0;
  std::thread trimming([&] { given = heap->Trim(~uint64_t{0}); });
  for (int i = 0; i < kLeases; ++i) {
    EXPECT_TRUE(heard.try_acquire_for(std::chrono::seconds(30)))
        << "before the first was answered";
  }
  broker().OnMessage(nullptr);
  {
    const std::lock_guard<std::mutex> lock(mu);
    for (const ClientMessage& message : unanswered) broker().Serve(message);
  }
  trimming.join();
  EXPECT_EQ(given, kLeases * 2 * kMiB);
  EXPECT_EQ(broker().leases(), 0);
}

TEST_F(ClientTrimTest, TheBrokerIsToldWhatCouldBeTrimmed) {
  StartBroker();
  const auto client = ConnectOrDie();
  EXPECT_TRUE(client->SetTrimmable("", 5).ok());
  EXPECT_TRUE(client->SetTrimmable("host-0", 7).ok());
  EXPECT_TRUE(absl::IsNotFound(client->SetTrimmable("host-9", 7)));
  ASSERT_TRUE(client->GetQuota().ok());
  std::vector<uint64_t> told;
  for (const ClientMessage& message : broker().messages()) {
    if (!message.has_set_trimmable()) continue;
    ASSERT_EQ(message.set_trimmable().devices_size(), 1);
    EXPECT_EQ(message.set_trimmable().devices(0).device(), "host-0");
    told.push_back(message.set_trimmable().devices(0).bytes());
  }
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), 7U);
  broker().HangUp();
  ASSERT_TRUE(broker().WaitUntil([&] { return !client->status().ok(); }));
  EXPECT_TRUE(absl::IsUnavailable(client->SetTrimmable("", 1)));
}

}  // namespace
}  // namespace gmb
