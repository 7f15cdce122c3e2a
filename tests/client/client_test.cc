// The client library with a broker that behaves.
#include "gmb/client.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/client/client_fixture.h"

namespace gmb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientTest = test::ClientTest;

TEST_F(ClientTest, ConnectSaysWhoItIsAndWhatTheBrokerOffers) {
  StartBroker();
  ClientOptions options = Options();
  options.tenant_token = "team-a";
  options.program = "trainer\n";
  const auto client = ConnectOrDie(std::move(options));
  EXPECT_EQ(client->tenant(), "team-a");
  EXPECT_EQ(client->session_id(), 1U);
  EXPECT_EQ(client->broker_version(), "fake of trainer?");
  EXPECT_THAT(client->warnings(), ElementsAre("this is a fake"));
  ASSERT_EQ(client->devices().size(), 1U);
  EXPECT_EQ(client->devices()[0].uuid, "host-0");
  EXPECT_EQ(client->devices()[0].kind, DeviceKind::kHost);
  EXPECT_EQ(client->devices()[0].granularity_bytes, 2 * kMiB);
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientTest, TheDirectoryComesFromTheEnvironmentWhenNotGiven) {
  StartBroker();
  setenv("GMB_SOCKET_DIR", dir().c_str(), 1);
  EXPECT_TRUE(Client::Connect().ok());
  unsetenv("GMB_SOCKET_DIR");
}

TEST_F(ClientTest, AnyDirectoryNameWorks) {
  // Longer than a socket's path may be, and full of what a URI would trip over.
  const std::string odd = dir() + "/a b%20#?" + std::string(120, 'x');
  const std::string odd_but_short = dir() + "/a b%20#?";
  std::filesystem::create_directories(odd);
  std::filesystem::create_directories(odd_but_short);
  StartBroker();
  for (const std::string& name : {odd, odd_but_short}) {
    std::filesystem::create_hard_link(dir() + "/handle.sock",
                                      name + "/handle.sock");
    std::filesystem::create_hard_link(dir() + "/gmb.sock", name + "/gmb.sock");
    ClientOptions options = Options();
    options.socket_dir = name;
    const auto client = ConnectOrDie(std::move(options));
    EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
  }
}

TEST_F(ClientTest, ALeaseOfManySlabsIsOneRangeOfZeroesThatKeepsWhatIsWritten) {
  StartBroker();
  const auto client = ConnectOrDie();
  absl::StatusOr<Lease> lease =
      client->Acquire(61 * kMiB + 1);  // 8 slabs, 3 frames
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->size_bytes(), 62 * kMiB);
  EXPECT_EQ(lease->device(), "host-0");
  EXPECT_GT(lease->id(), 0U);
  auto* const words = static_cast<uint32_t*>(lease->data());
  const size_t count = lease->size_bytes() / sizeof(uint32_t);
  EXPECT_TRUE(
      std::all_of(words, words + count, [](uint32_t w) { return w == 0; }));
  std::iota(words, words + count, 7U);
  for (size_t i = 0; i < count; i += 4099) ASSERT_EQ(words[i], 7 + i);
  EXPECT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kMapped) == 1; }));
  EXPECT_EQ(broker().acknowledged(), 3);
}

TEST_F(ClientTest, ReleaseGivesTheMemoryBackBeforeItReturns) {
  StartBroker();
  const auto client = ConnectOrDie();
  absl::StatusOr<Lease> lease = client->Acquire(32 * kMiB);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(broker().FreeBytes(), 224 * kMiB);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
  EXPECT_EQ(broker().leases(), 0);
  EXPECT_TRUE(lease->empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(std::move(*lease).Release()))
      << "released twice";
}

TEST_F(ClientTest, ALeaseThatIsDestroyedOrOverwrittenGoesBack) {
  StartBroker();
  const auto client = ConnectOrDie();
  {
    Lease lease = *client->Acquire(8 * kMiB);
    lease = *client->Acquire(16 * kMiB);
    EXPECT_EQ(lease.size_bytes(), 16 * kMiB);
    EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 1; }));
    Lease moved = std::move(lease);
    EXPECT_EQ(lease.data(),
              nullptr);  // NOLINT(bugprone-use-after-move): says so
    EXPECT_EQ(lease.size_bytes(), 0U);
    EXPECT_EQ(lease.id(), 0U);
    EXPECT_EQ(lease.device(), "");
    EXPECT_NE(moved.data(), nullptr);
  }
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
}

TEST_F(ClientTest, ALeaseOutlivesItsClient) {
  StartBroker();
  auto client = ConnectOrDie();
  Lease lease = *client->Acquire(8 * kMiB);
  client.reset();
  EXPECT_EQ(broker().open_sessions(), 1);
  std::memset(lease.data(), 0x5A, lease.size_bytes());
  EXPECT_TRUE(std::move(lease).Release().ok());
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().open_sessions() == 0; }));
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

TEST_F(ClientTest, CopiesStayInsideTheLease) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(4 * kMiB);
  std::array<unsigned char, 4> out{};
  ASSERT_TRUE(lease.Fill(0, 0xA5, lease.size_bytes()).ok());
  ASSERT_TRUE(lease.CopyFromHost(4 * kMiB - 2, "ok", 2).ok());
  ASSERT_TRUE(lease.CopyToHost(out.data(), 4 * kMiB - 4, 4).ok());
  EXPECT_THAT(out, ElementsAre(0xA5, 0xA5, 'o', 'k'));
  EXPECT_TRUE(
      absl::IsOutOfRange(lease.CopyToHost(out.data(), 4 * kMiB - 3, 4)));
  EXPECT_TRUE(
      absl::IsOutOfRange(lease.CopyFromHost(~uint64_t{0}, out.data(), 2)));
  EXPECT_TRUE(absl::IsOutOfRange(lease.Fill(0, 0, ~uint64_t{0})));
  EXPECT_TRUE(absl::IsFailedPrecondition(Lease().Fill(0, 0, 1)));
}

TEST_F(ClientTest, ARefusalCarriesTheBrokersMessageAndDetail) {
  StartBroker();
  const auto client = ConnectOrDie();
  const absl::Status refused = client->Acquire(1 << 30).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(), "no such memory: ask for other bytes");
  const std::optional<ErrorDetail> detail = GetErrorDetail(refused);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, ErrorReason::kPoolExhausted);
  EXPECT_EQ(ErrorReasonName(detail->reason), "POOL_EXHAUSTED");
  EXPECT_EQ(detail->deficit_bytes, uint64_t{1} << 30);
  EXPECT_EQ(detail->retry_after, absl::Milliseconds(1500));
  EXPECT_EQ(detail->field, "bytes");
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientTest, AcquireSendsWhatWasAskedFor) {
  StartBroker();
  const auto client = ConnectOrDie();
  AcquireOptions options;
  options.device = "host-0";
  options.contents = Contents::kResident;
  options.wait = absl::Milliseconds(2500);
  ASSERT_TRUE(client->Acquire(5 * kMiB, options).ok());
  options.wait = absl::InfiniteDuration();
  options.contents = Contents::kDiscard;
  ASSERT_TRUE(client->Acquire(5 * kMiB, options).ok());
  std::vector<v1::Acquire> asked;
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_acquire()) asked.push_back(message.acquire());
  }
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].bytes(), 5 * kMiB);
  EXPECT_EQ(asked[0].device(), "host-0");
  EXPECT_EQ(asked[0].contents(), v1::RESIDENT);
  EXPECT_EQ(asked[0].wait().seconds(), 2);
  EXPECT_EQ(asked[0].wait().nanos(), 500'000'000);
  EXPECT_EQ(asked[1].contents(), v1::DISCARD);
  EXPECT_EQ(asked[1].wait().seconds(), 3600);
}

TEST_F(ClientTest, QuotaIsReported) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(16 * kMiB);
  const auto quotas = client->GetQuota();
  ASSERT_TRUE(quotas.ok());
  ASSERT_EQ(quotas->size(), 1U);
  EXPECT_EQ((*quotas)[0].device, "host-0");
  EXPECT_EQ((*quotas)[0].pool_bytes, 256 * kMiB);
  EXPECT_EQ((*quotas)[0].leased_bytes, 16 * kMiB);
  EXPECT_EQ((*quotas)[0].obtainable_bytes, 240 * kMiB);
}

TEST_F(ClientTest, AWaitingRequestIsToldAndGrantedLater) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().OnMessage([this](const ClientMessage& message) {
    if (!message.has_acquire()) return broker().Serve(message);
    v1::BrokerMessage waiting;
    waiting.set_request_id(message.request_id());
    waiting.mutable_waiting()->set_ahead(2);
    broker().Say(waiting);
  });
  AcquireOptions options;
  options.wait = absl::Seconds(20);
  options.on_waiting = [&](uint64_t ahead) {
    EXPECT_EQ(ahead, 2U);
    for (const ClientMessage& message : broker().messages()) {
      if (message.has_acquire()) broker().Serve(message);
    }
    throw std::runtime_error("dropped");
  };
  EXPECT_TRUE(client->Acquire(4 * kMiB, options).ok());
}

TEST_F(ClientTest, SlabsAreReadWhileAHandlerOfItsSessionDoesNotReturn) {
  StartBroker();
  const auto client = ConnectOrDie();
  { const Lease opens_the_device = *client->Acquire(2 * kMiB); }
  broker().OnMessage([this](const ClientMessage& message) {
    if (!message.has_acquire()) return broker().Serve(message);
    v1::BrokerMessage waiting;
    waiting.set_request_id(message.request_id());
    waiting.mutable_waiting()->set_ahead(1);
    broker().Say(waiting);
  });
  AcquireOptions options;
  options.wait = absl::Seconds(20);
  bool read = false;
  options.on_waiting = [&](uint64_t /*ahead*/) {
    const int before = broker().acknowledged();
    for (const ClientMessage& message : broker().messages()) {
      if (message.acquire().bytes() == 4 * kMiB) broker().Serve(message);
    }
    read = broker().WaitUntil([&] { return broker().acknowledged() > before; });
  };
  EXPECT_TRUE(client->Acquire(4 * kMiB, options).ok());
  EXPECT_TRUE(read);
}

TEST_F(ClientTest, ASessionThatMapsALeaseReadsOnItsOwn) {
  StartBroker();
  const auto client = ConnectOrDie();
  // A call reads its slabs itself, and then it is the session's turn again.
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Lease> lease = client->Acquire(4 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(std::move(*lease).Release().ok());
    const int before = broker().acknowledged();
    v1::BrokerFrame frame;
    frame.mutable_slabs()->set_lease_id(99);
    frame.mutable_slabs()->set_request_id(1);  // that was answered long ago
    frame.mutable_slabs()->set_slabs_in_lease(1);
    frame.mutable_slabs()->add_slab_bytes(2 * kMiB);
    const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
    broker().SendFrame(frame, {fd.get()});
    EXPECT_TRUE(
        broker().WaitUntil([&] { return broker().acknowledged() > before; }));
  }
}

TEST_F(ClientTest, AWaitingRequestCanBeWithdrawn) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::stop_source stop;
  std::atomic<uint64_t> waiting_id = 0;
  broker().OnMessage([&](const ClientMessage& message) {
    if (message.has_acquire()) {
      waiting_id = message.request_id();
      stop.request_stop();
    } else if (message.has_cancel()) {
      EXPECT_EQ(message.cancel().acquire_request_id(), waiting_id);
      v1::BrokerMessage answer;
      answer.set_request_id(waiting_id);
      answer.mutable_error()->set_code(1);
      answer.mutable_error()->set_message("withdrawn");
      answer.mutable_error()->mutable_detail()->set_reason(
          v1::CANCELLED_BY_CLIENT);
      broker().Say(answer);
    } else {
      broker().Serve(message);
    }
  });
  AcquireOptions options;
  options.wait = absl::Hours(1);
  options.cancel = stop.get_token();
  const absl::Status withdrawn = client->Acquire(4 * kMiB, options).status();
  EXPECT_TRUE(absl::IsCancelled(withdrawn));
  EXPECT_EQ(GetErrorDetail(withdrawn)->reason, ErrorReason::kCancelledByClient);
}

TEST_F(ClientTest, NoticesReachTheHandlersWhichMayThrowAndCallBack) {
  StartBroker();
  std::atomic<int> budgets = 0;
  std::atomic<int> drains = 0;
  std::atomic<Client*> callable = nullptr;
  ClientOptions options = Options();
  options.on_budget_changed = [&](const QuotaView& quota) {
    EXPECT_EQ(quota.limit_bytes, 77U);
    EXPECT_TRUE(callable.load()->GetQuota().ok());
    ++budgets;
    throw std::runtime_error("dropped");
  };
  options.on_draining = [&](absl::Duration remaining) {
    EXPECT_EQ(remaining, absl::Seconds(9));
    ++drains;
    throw 42;
  };
  const auto client = ConnectOrDie(std::move(options));
  callable = client.get();
  v1::BrokerMessage budget;
  budget.mutable_budget_changed()->mutable_quota()->set_device("host-0");
  budget.mutable_budget_changed()->mutable_quota()->set_limit_bytes(77);
  v1::BrokerMessage draining;
  draining.mutable_draining()->mutable_remaining()->set_seconds(9);
  broker().Say(budget);
  EXPECT_TRUE(broker().WaitUntil([&] { return budgets == 1; }));
  broker().Say(draining);
  EXPECT_TRUE(broker().WaitUntil([&] { return drains == 1; }));
  broker().Say(budget);
  EXPECT_TRUE(broker().WaitUntil([&] { return budgets == 2; }));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST_F(ClientTest, AClientMayBeDestroyedInsideItsOwnHandler) {
  StartBroker();
  std::unique_ptr<Client> client;
  std::atomic<bool> connected = false;
  std::atomic<bool> destroyed = false;
  ClientOptions options = Options();
  options.on_draining = [&](absl::Duration) {
    connected.wait(false);
    client.reset();
    destroyed = true;
  };
  client = ConnectOrDie(std::move(options));
  connected = true;
  v1::BrokerMessage draining;
  draining.mutable_draining();
  broker().Say(draining);
  EXPECT_TRUE(broker().WaitUntil([&] { return destroyed.load(); }));
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().open_sessions() == 0; }));
}

TEST_F(ClientTest, ManyThreadsShareOneClient) {
  StartBroker();
  const auto client = ConnectOrDie();
  constexpr int kThreads = 8;
  constexpr int kRounds = 25;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        absl::StatusOr<Lease> lease = client->Acquire((1 + t % 3) * 9 * kMiB);
        if (!lease.ok()) {
          ++wrong;
          continue;
        }
        auto* const first = static_cast<char*>(lease->data());
        *first = static_cast<char>(t);
        first[lease->size_bytes() - 1] = static_cast<char>(round);
        if (!client->GetQuota().ok() || *first != static_cast<char>(t)) ++wrong;
        if (round % 2 == 0 && !std::move(*lease).Release().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(broker().leases(), 0);
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

TEST_F(ClientTest, NothingLeaksOverManySessionsAndLeases) {
  StartBroker();
  const auto one_life = [this] {
    const auto client = ConnectOrDie();
    std::vector<Lease> leases;
    for (int i = 0; i < 6; ++i) leases.push_back(*client->Acquire(20 * kMiB));
    EXPECT_FALSE(client->Acquire(1 << 30).ok());
  };
  const auto settled = [this] {
    return broker().WaitUntil([this] { return broker().open_sessions() == 0; });
  };
  one_life();
  ASSERT_TRUE(settled());
  const size_t before = OpenFds();
  for (int i = 0; i < 20; ++i) {
    one_life();
    ASSERT_TRUE(settled());
  }
  EXPECT_TRUE(broker().WaitUntil([&] { return OpenFds() <= before; }))
      << OpenFds();
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

}  // namespace
}  // namespace gmb
