// Leases that the broker takes away and brings back.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/lease/move_table.h"
#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientMovesTest = test::ClientGateTest;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBytes = 36 * kMiB;  // 5 slabs, 2 frames

bool Holds(const Lease& lease, char value) {
  const char* const bytes = static_cast<const char*>(lease.data());
  return bytes[0] == value &&
         std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
}

TEST_F(ClientMovesTest, ALeaseComesBackAtItsAddressWithTheBytesItIsGiven) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  void* const address = lease.data();
  std::memset(address, 'a', kBytes);
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());

  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1));
  EXPECT_TRUE(broker().Moved(1)[0].has_unmapped());
  EXPECT_FALSE(broker().Moved(1)[0].unmapped().has_error());
  broker().DropSlabs(lease.id());
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB) << "nothing is held";
  EXPECT_EQ(lease.data(), address);
  EXPECT_EQ(lease.size_bytes(), kBytes);

  On(ClientMessage::kRestore, [&](const ClientMessage&) {
    broker().Say(broker().SendSlabs(lease.id(), 2, kBytes, 'b'));
  });
  std::thread rest([&] {  // of what the broker does
    EXPECT_TRUE(AwaitMoved(2));
    EXPECT_TRUE(Reopen());
    ServeRestores();
  });
  const absl::StatusOr<Scope> scope = client->Enter(kWait);
  rest.join();
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(broker().Moved(2)[0].has_mapped());
  EXPECT_FALSE(broker().Moved(2)[0].mapped().has_error());
  EXPECT_EQ(lease.data(), address);
  EXPECT_TRUE(Holds(lease, 'b'));
  EXPECT_TRUE(broker().WaitUntil([&] {
    return broker().Count(ClientMessage::kMapped) == 2;
  })) << "of the grant and of the Map";
}

TEST_F(ClientMovesTest, SlabsMayComeAfterTheirMap) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  broker().Evict(lease.id(), 4);
  ASSERT_TRUE(AwaitMoved(4));
  v1::BrokerMessage map;
  map.mutable_map()->set_lease_id(lease.id());
  map.mutable_map()->set_move(7);
  map.mutable_map()->set_slabs(5);
  map.mutable_map()->set_bytes(kBytes);
  broker().Say(map);
  ASSERT_TRUE(client->GetQuota().ok()) << "and it has arrived";
  (void)broker().SendSlabs(lease.id(), 7, kBytes, 'c');
  ASSERT_TRUE(AwaitMoved(7));
  EXPECT_TRUE(Holds(lease, 'c'));
}

TEST_F(ClientMovesTest, WhileItIsAwayCopiesFailAndNothingCrashes) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  broker().Evict(lease.id(), 1);  // a broker that does not close the gate
  ASSERT_TRUE(AwaitMoved(1));
  char byte = 0;
  for (const absl::Status& status :
       {lease.CopyToHost(&byte, 0, 1), lease.CopyFromHost(0, &byte, 1),
        lease.Fill(0, 1, kBytes)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("evicted: enter"));
  }
  broker().HangUp();
  ASSERT_TRUE(broker().WaitUntil([&] { return !client->status().ok(); }));
  EXPECT_TRUE(absl::IsFailedPrecondition(lease.Fill(0, 1, 1)))
      << "it stays away";
  EXPECT_TRUE(std::move(lease).Release().ok());
}

TEST_F(ClientMovesTest, WhatIsAskedAgainIsAnsweredAgainAndNotDoneAgain) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1));
  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1, 2));
  const v1::BrokerMessage map = broker().SendSlabs(lease.id(), 2, kBytes, 'd');
  broker().Say(map);
  ASSERT_TRUE(AwaitMoved(2));
  broker().Say(map);
  ASSERT_TRUE(AwaitMoved(2, 2));
  EXPECT_FALSE(broker().Moved(2)[1].mapped().has_error());
  broker().Evict(lease.id(), 1);  // older: from before the Map
  ASSERT_TRUE(client->GetQuota().ok());
  EXPECT_TRUE(Holds(lease, 'd'));
  EXPECT_EQ(broker().Moved(1).size(), 2U);
}

TEST_F(ClientMovesTest, AnswersAreRepeatedUntilTheyHaveArrived) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  ASSERT_TRUE(client->GetQuota().ok());  // confirms Mapped
  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1));
  broker().BreakStream();
  ASSERT_TRUE(AwaitMoved(1, 2)) << "nothing was answered since";
  ASSERT_TRUE(client->GetQuota().ok());
  broker().BreakStream();
  ASSERT_TRUE(broker().WaitUntil([&] { return broker().streams() == 3; }));
  ASSERT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(broker().Moved(1).size(), 2U);
}

TEST_F(ClientMovesTest, ALeaseMayBeReleasedWhileItIsAway) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  const uint64_t id = lease.id();
  broker().Evict(id, 1);
  ASSERT_TRUE(AwaitMoved(1));
  On(ClientMessage::kRelease, [&](const ClientMessage& message) {
    // Too late, as the Release has not been read yet.
    broker().Say(broker().SendSlabs(id, 2, kBytes, 'e'));
    broker().Evict(id, 3);
    broker().Serve(message);
  });
  EXPECT_TRUE(std::move(lease).Release().ok());
  EXPECT_TRUE(broker().WaitUntil([&] {
    return broker().FreeBytes() == 256 * kMiB;
  })) << "the slabs that came are closed";
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_TRUE(broker().Moved(2).empty() && broker().Moved(3).empty());
}

// A shared lease keeps its id for a session that attaches to it again.
TEST(MoveTableTest, AnEvictOfAMappingThatWasReleasedIsNotOfTheNextOne) {
  v1::Evict evict;
  evict.set_lease_id(7);
  evict.set_move(5);
  for (const bool released : {false, true}) {
    internal::MoveTable table;
    ASSERT_TRUE(table.OnEvict(evict).ok());
    if (released) table.OnReleased(7);
    table.Add(7, nullptr);
    EXPECT_EQ(table.has_task(), !released);
    table.OnReleased(8);  // of nothing
  }
}

TEST_F(ClientMovesTest, AnEvictBeforeTheFirstMappingWaitsForIt) {
  StartBroker();
  const auto client = ConnectOrDie();
  On(ClientMessage::kAcquire, [this](const ClientMessage& message) {
    const v1::BrokerMessage grant = broker().MakeLease(message);
    broker().Evict(grant.grant().lease_id(), 1);
    broker().Say(grant);
  });
  Lease lease = *client->Acquire(kBytes);
  ASSERT_TRUE(AwaitMoved(1));
  const std::vector<ClientMessage> messages = broker().messages();
  const auto unmapped =
      std::find_if(messages.begin(), messages.end(),
                   [](const ClientMessage& m) { return m.has_unmapped(); });
  EXPECT_TRUE(std::any_of(messages.begin(), unmapped, [](const auto& m) {
    return m.has_mapped();
  })) << "Mapped comes first";
  broker().DropSlabs(lease.id());
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

TEST_F(ClientMovesTest, ANewerMoveReplacesAMapThatHasNotAllOfItsSlabs) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(kBytes);
  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1));
  v1::BrokerMessage map;
  map.mutable_map()->set_lease_id(lease.id());
  map.mutable_map()->set_move(2);
  map.mutable_map()->set_slabs(5);
  map.mutable_map()->set_bytes(kBytes);
  broker().Say(map);
  broker().Evict(lease.id(), 3);
  ASSERT_TRUE(AwaitMoved(3));
  EXPECT_FALSE(broker().Moved(3)[0].unmapped().has_error());
  EXPECT_TRUE(broker().Moved(2).empty());
  broker().DropSlabs(lease.id());
  (void)broker().SendSlabs(lease.id(), 2, kBytes, 'f');
  broker().DropSlabs(lease.id());
  EXPECT_TRUE(broker().WaitUntil([&] {
    return broker().FreeBytes() == 256 * kMiB;
  })) << "slabs of an older move are closed";
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientMovesTest, ManyLeasesMoveWhileThreadsComeAndGo) {
  StartBroker();
  const auto client = ConnectOrDie();
  constexpr int kLeases = 6;
  constexpr int kRounds = 10;
  std::vector<Lease> leases;
  for (int i = 0; i < kLeases; ++i)
    leases.push_back(*client->Acquire(10 * kMiB));
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  base::Mutex mu;  // so that no Restore is missed
  On(ClientMessage::kRestore, [&](const ClientMessage& message) {
    base::MutexLock lock(&mu);
    const ipc::GateWord word = Word();
    if (word.state() != ipc::GateState::kClosed && !word.paused())
      broker().Serve(message);
  });
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;  // end with the test, however it ends
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const absl::StatusOr<Scope> scope = client->Enter(kWait);
        if (!scope.ok()) {
          ++wrong;
          return;
        }
        // The lease was brought back whole.
        const Lease& lease = leases[static_cast<size_t>(t)];
        const char* const bytes = static_cast<const char*>(lease.data());
        if (bytes[0] != bytes[lease.size_bytes() - 1]) ++wrong;
      }
    });
  }
  uint64_t move = 0;
  for (int round = 1; round <= kRounds; ++round) {
    // Three threads that never rest need not be out at once by themselves.
    ipc::PauseGate(broker().gate());
    ASSERT_TRUE(Close());
    const uint64_t first = move + 1;
    for (const Lease& lease : leases) broker().Evict(lease.id(), ++move);
    for (uint64_t m = first; m <= move; ++m) ASSERT_TRUE(AwaitMoved(m));
    for (const Lease& lease : leases) broker().DropSlabs(lease.id());
    const uint64_t second = move + 1;
    for (const Lease& lease : leases) {
      broker().Say(broker().SendSlabs(lease.id(), ++move, 10 * kMiB,
                                      static_cast<char>(round)));
    }
    for (uint64_t m = second; m <= move; ++m) ASSERT_TRUE(AwaitMoved(m));
    base::MutexLock lock(&mu);
    ASSERT_TRUE(Reopen());
    ServeRestores();
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  for (const Lease& lease : leases)
    EXPECT_TRUE(Holds(lease, static_cast<char>(kRounds)));
}

}  // namespace
}  // namespace gmb
