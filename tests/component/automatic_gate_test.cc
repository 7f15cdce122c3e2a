// A process that marks its calls, as `gmb run` does, against the real broker:
// when its memory is lent, when it is not, and that no byte is lost.
#include "client/session/automatic_gate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/gate/bias_slots.h"
#include "client/session/session.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using internal::AutomaticGate;
using internal::AutomaticGateOptions;
using internal::Bias;
using internal::BiasSlot;
using internal::BiasSlots;
using internal::IdlerDevices;

constexpr uint64_t kBytes = 64 * kMiB;

// A GPU whose work is done, or not, as a test says.
class SomeDevices final : public IdlerDevices {
 public:
  bool Record() override { return true; }
  Work Poll() override {
    ++polls;
    return busy ? Work::kBusy : Work::kDone;
  }

  bool HeedsPauses() override {
    if (!heeds_pauses) ++unheeded;
    return heeds_pauses;
  }

  std::atomic<int> polls{0};
  std::atomic<bool> busy{false};
  std::atomic<bool> heeds_pauses{true};
  std::atomic<int> unheeded{0};
};

class AutomaticGateTest : public ComponentTest {
 protected:
  void SetUp() override {
    BrokerOptions options;
    options.devices = {"host:256MiB"};
    options.flags = {"--host-pool=128MiB"};
    StartBroker(options);
    MakeTenant("a");
    MakeTenant("b");
    ClientOptions connect = OptionsFor(TenantDir("a"));
    connect.automatic_gate = true;
    auto client = Client::Connect(std::move(connect));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    AutomaticGateOptions idle;
    idle.idling.park_after = std::chrono::milliseconds(10);
    idle.say = [said = said_](const std::string& text) {
      const base::MutexLock lock(&said->mu);
      said->text += text + '\n';
    };
    gate_ = std::make_unique<AutomaticGate>(
        internal::SessionOf(*client_).shared_from_this(), &devices_, idle);
    ASSERT_TRUE(gate_->Begin().ok());
    auto lease = client_->Acquire(kBytes);
    ASSERT_TRUE(lease.ok()) << lease.status();
    lease_ = *std::move(lease);
    EXPECT_TRUE(Call([&](char* at) { std::memset(at, 7, kBytes); }));
  }
  void TearDown() override {
    gate_.reset();
    lease_ = {};
    client_.reset();
    ComponentTest::TearDown();
  }

  // A call of the driver, as the preload library marks it.
  bool Call(const std::function<void(char*)>& touch) {
    BiasSlot& slot = *BiasSlots::Mine();
    Bias::Entry entry{.was = 0, .ordinary = false};
    if (!internal::MarkAndLook(slot, gate_->bias().flags(), entry.was) &&
        !gate_->EnterSlowly(slot, entry)) {
      return false;
    }
    touch(static_cast<char*>(lease_.data()));
    gate_->bias().Leave(slot, entry);
    return true;
  }
  bool Holds(char byte) {
    bool right = true;
    return Call([&](char* at) {
             right = at[0] == byte && at[kBytes - 1] == byte &&
                     std::memcmp(at, at + 1, kBytes - 1) == 0;
           }) &&
           right;
  }

  [[nodiscard]] v1::SessionInfo SessionOfA() const {
    v1::ListSessionsRequest request;
    request.set_tenant("a");
    const auto sessions = admin().ListSessions(request);
    return sessions.ok() && sessions->sessions_size() == 1
               ? sessions->sessions(0)
               : v1::SessionInfo();
  }
  // It was parked, and has work on its GPU for which the idler waits.
  void WorkWithoutEnd() {
    AwaitGate(v1::SessionInfo::GATE_PARKED);
    devices_.busy = true;
    EXPECT_TRUE(Call([](char*) {}));
    const int before = devices_.polls;
    EXPECT_TRUE(Await([&] { return devices_.polls > before + 3; }));
  }
  void SetPauseGrace(const std::string& grace) {
    EXPECT_EQ(Gmb({"tenant", "set", "a", "--pause-grace", grace}).exit_code, 0);
  }
  void AwaitGate(v1::SessionInfo::Gate gate) const {
    EXPECT_TRUE(Await([&] { return SessionOfA().gate() == gate; }))
        << SessionOfA().DebugString();
  }
  // All that a does not hold, and what it does, if it may be taken.
  [[nodiscard]] absl::StatusOr<Lease> TakeAll(Client& other,
                                              absl::Duration wait) const {
    return other.Acquire(254 * kMiB, WaitFor(wait));
  }
  [[nodiscard]] std::string Said() const {
    const base::MutexLock lock(&said_->mu);
    return said_->text;
  }

  struct Lines {
    base::Mutex mu;
    std::string text;
  };
  const std::shared_ptr<Lines> said_ = std::make_shared<Lines>();
  std::unique_ptr<Client> client_;
  Lease lease_;
  SomeDevices devices_;
  std::unique_ptr<AutomaticGate> gate_;
};

TEST_F(AutomaticGateTest, WhatWasTakenIsBackBeforeACallIsLetIn) {
  AwaitGate(v1::SessionInfo::GATE_PARKED);
  const auto other = ConnectAs("b");
  for (int turn = 0; turn < 3; ++turn) {
    auto taken = TakeAll(*other, absl::Seconds(30));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(SessionOfA().evicted_bytes(), kBytes);
    EXPECT_TRUE(taken->Fill(0, 1, 254 * kMiB).ok());
    std::thread caller([&] { EXPECT_TRUE(Holds(7)); });
    EXPECT_TRUE(Await([&] { return SessionOfA().waiting() == 1; }));
    EXPECT_TRUE(std::move(*taken).Release().ok());
    caller.join();
    AwaitGate(v1::SessionInfo::GATE_PARKED);
  }
}

// Threads that call with pauses in between, while the memory is taken whenever
// it can be had.
TEST_F(AutomaticGateTest, ManyCallersLoseNothing) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  const auto other = ConnectAs("b");
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (uint64_t i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      std::mt19937_64 random(seed + i);
      const uint64_t part = kBytes / 3;
      char value = 7;
      while (!stop) {
        const char next = static_cast<char>(random());
        EXPECT_TRUE(Call([&](char* at) {
          EXPECT_EQ(at[i * part], value);
          EXPECT_EQ(at[i * part + part - 1], value);
          at[i * part] = next;
          at[i * part + part - 1] = next;
        }));
        value = next;
        std::this_thread::sleep_for(
            std::chrono::milliseconds(random() % 4 == 0 ? 40 : 0));
      }
    });
  }
  uint64_t taken = 0;
  for (int i = 0; i < 6; ++i) {
    auto lease = TakeAll(*other, absl::Seconds(2));
    if (!lease.ok()) continue;
    ++taken;
    EXPECT_TRUE(lease->Fill(0, 9, 254 * kMiB).ok());
    EXPECT_TRUE(std::move(*lease).Release().ok());
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(taken, 0U);
}

TEST_F(AutomaticGateTest, UntilItWasSeenQuietNothingIsLent) {
  // A process of its own kind, from the start.
  devices_.busy = true;
  EXPECT_TRUE(Call([](char*) {}));
  gate_->NeverPark("the test\nsays so \xff");
  EXPECT_TRUE(Await([&] {
    return SessionOfA().never_lends() == "the test says so  ";
  })) << SessionOfA().DebugString();
  AwaitGate(v1::SessionInfo::GATE_OFF);
  const auto other = ConnectAs("b");
  EXPECT_FALSE(TakeAll(*other, absl::Milliseconds(200)).ok());
  EXPECT_TRUE(Holds(7));
  EXPECT_EQ(Said(),
            "this process never lends its memory: the test\nsays so \xff\n");
}

TEST_F(AutomaticGateTest, AGpuThatIsAtWorkAtTheLastMomentKeepsItsMemory) {
  AwaitGate(v1::SessionInfo::GATE_PARKED);
  devices_.busy = true;  // by somebody who made no call
  const auto other = ConnectAs("b");
  EXPECT_FALSE(TakeAll(*other, absl::Seconds(2)).ok());
  // Once proves nothing; the broker asks again after a while.
  EXPECT_TRUE(Await([&] {
    EXPECT_FALSE(TakeAll(*other, absl::Milliseconds(200)).ok());
    return SessionOfA().never_lends().find("at work") != std::string::npos;
  })) << SessionOfA().DebugString();
  EXPECT_TRUE(Holds(7));
  EXPECT_EQ(SessionOfA().evicted_bytes(), 0U);
  devices_.busy = false;
  AwaitGate(v1::SessionInfo::GATE_OFF);
  EXPECT_FALSE(TakeAll(*other, absl::Milliseconds(200)).ok());
  EXPECT_TRUE(Holds(7));
}

// It was to be off, for it was at work; but it parks before the pause is over,
// and nobody waits for anything then.
TEST_F(AutomaticGateTest, AfterAPauseThatFailedItParksAsSoonAsItIsIdle) {
  MakeTenant("b", 254 * kMiB);
  SetPauseGrace("1h");
  WorkWithoutEnd();
  devices_.heeds_pauses = false;
  const auto other = ConnectAs("b");
  std::atomic<bool> granted{false};
  std::thread asks([&] {
    const auto taken = TakeAll(*other, absl::Minutes(1));
    EXPECT_TRUE(taken.ok()) << taken.status();
    granted = true;
  });
  EXPECT_TRUE(Await([&] { return devices_.unheeded > 0; }));
  devices_.busy = false;
  bool asked = false;
  EXPECT_TRUE(Await([&] {
    asked |= SessionOfA().waiting() > 0;
    return granted.load();
  }));
  EXPECT_FALSE(asked) << "for what was there";
  asks.join();
}

// Where another's memory can serve the guarantee, a process at work does not lend.
TEST_F(AutomaticGateTest, APauseThatComesWhileTheGpuIsAtWorkIsNoticed) {
  MakeTenant("c");
  const auto third = ConnectAs("c");
  ASSERT_TRUE(third->TurnGateOn().ok());
  const auto soft = third->Acquire(32 * kMiB);
  ASSERT_TRUE(soft.ok()) << soft.status();
  const auto scope = third->Enter(absl::Seconds(10));
  ASSERT_TRUE(scope.ok()) << scope.status();
  MakeTenant("b", 176 * kMiB);
  SetPauseGrace("300ms");
  WorkWithoutEnd();
  const auto other = ConnectAs("b");
  std::thread asks([&] {
    EXPECT_FALSE(other->Acquire(176 * kMiB, WaitFor(absl::Seconds(2))).ok());
  });
  AwaitGate(v1::SessionInfo::GATE_OFF);
  asks.join();
}

TEST_F(AutomaticGateTest, ARankJoinsItsGroupWhileItsGpuIsAtWork) {
  WorkWithoutEnd();
  gate_->JoinGroup("ranks", 2);
  EXPECT_EQ(SessionOfA().group(), "ranks");
  EXPECT_EQ(SessionOfA().gate(), v1::SessionInfo::GATE_OFF);
  EXPECT_EQ(Said(), "");
}

TEST_F(AutomaticGateTest, AProcessThatExitsDoesNotWaitForItsMemory) {
  AwaitGate(v1::SessionInfo::GATE_PARKED);
  const auto other = ConnectAs("b");
  const auto taken = TakeAll(*other, absl::Seconds(30));
  ASSERT_TRUE(taken.ok()) << taken.status();
  std::atomic<bool> let_in{true};
  std::thread caller([&] { let_in = Call([](char*) {}); });
  EXPECT_TRUE(Await([&] { return SessionOfA().waiting() == 1; }));
  gate_->Stop();
  EXPECT_FALSE(Call([](char*) {})) << "at once";
  KillBroker();
  caller.join();
  EXPECT_FALSE(let_in) << "it is away for good";
  EXPECT_FALSE(Call([](char*) {}));
}

TEST_F(AutomaticGateTest, RanksAreNotLentBeforeAllOfThemAreThere) {
  AwaitGate(v1::SessionInfo::GATE_PARKED);
  gate_->JoinGroup("ranks", 2);
  EXPECT_EQ(SessionOfA().gate(), v1::SessionInfo::GATE_OFF);
  EXPECT_EQ(SessionOfA().group(), "ranks");
  const int before =
      devices_.polls;  // each time it was seen quiet, and would be on
  EXPECT_TRUE(Await([&] { return devices_.polls > before + 5; }));
  EXPECT_EQ(SessionOfA().gate(), v1::SessionInfo::GATE_OFF);
  const uint64_t first = SessionOfA().id();
  const auto second = ConnectAs("a");
  GateOptions options;
  options.group = "ranks";
  ASSERT_TRUE(second->TurnGateOn(options).ok());
  EXPECT_TRUE(Await([&] {
    v1::ListSessionsRequest request;
    request.set_tenant("a");
    const auto sessions = admin().ListSessions(request);
    return sessions.ok() &&
           std::any_of(sessions->sessions().begin(), sessions->sessions().end(),
                       [&](const v1::SessionInfo& one) {
                         return one.id() == first &&
                                one.gate() == v1::SessionInfo::GATE_PARKED;
                       });
  }));
  gate_->JoinGroup("others", 2);
  EXPECT_THAT(Said(), ::testing::HasSubstr("it is in another group"));
}

TEST_F(AutomaticGateTest, AfterTheBrokersEndMemoryThatIsThereIsUsedOn) {
  AwaitGate(v1::SessionInfo::GATE_PARKED);
  KillBroker();
  EXPECT_TRUE(Holds(7));
  EXPECT_TRUE(Call([](char* at) { std::memset(at, 8, kBytes); }));
  EXPECT_TRUE(Holds(8));
  EXPECT_THAT(Said(), ::testing::HasSubstr("the session is over"));
}

}  // namespace
}  // namespace gmb::component
