// Sessions that break the rules of the gate, or say what they like into its
// page: the broker takes only what reads as parked, and nothing can hurt it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmb/error.h"
#include "tests/component/reclaim_liars.h"

namespace gmb::component {
namespace {

using ReclaimGateLiarsTest = ReclaimLiarsTest;

v1::ClientMessage PatientRestore() {
  v1::ClientMessage message;
  message.mutable_restore()->mutable_wait()->set_seconds(20);
  return message;
}

TEST_F(ReclaimGateLiarsTest, OneThatNeverParksIsPausedAndLeftAlone) {
  v1::SetTenantRequest grace;
  grace.set_name("liar");
  grace.mutable_pause_grace()->set_seconds(6);
  ASSERT_TRUE(SetTenant(grace).ok());
  const auto liar = OpenLiar();
  liar->TurnGateOn();
  const uint64_t lease = liar->Acquire(kLiarBytes);
  GuaranteeToWaiting(kWaitingBytes);
  auto waiting = Wait(absl::Seconds(9));
  (void)liar->AwaitNotice(v1::BrokerMessage::kPausing);
  EXPECT_TRUE(ipc::LookAtGate(liar->cells()).paused());
  v1::ClientMessage more;
  more.mutable_acquire()->set_bytes(2 * kMiB);
  more.mutable_acquire()->mutable_wait()->set_seconds(20);
  EXPECT_EQ(liar->Ask(more).error().detail().reason(), v1::PAUSING);
  EXPECT_TRUE(watch().AwaitOut("pause_withdrawn")) << watch().Out();
  EXPECT_FALSE(ipc::LookAtGate(liar->cells()).paused());
  EXPECT_TRUE(absl::IsResourceExhausted(waiting.get()));
  EXPECT_EQ(LeaseOf(lease)->state(), v1::LeaseInfo::MAPPED);
  const absl::Status left = Take(kLeftBytes, kLong);
  EXPECT_TRUE(left.ok()) << left;
}

// It pays with its own: a scope that the pause kept out.
TEST_F(ReclaimGateLiarsTest, OneThatClearsItsPauseGainsNothing) {
  const auto liar = OpenLiar();
  liar->TurnGateOn();
  (void)liar->Acquire(kLiarBytes);
  GuaranteeToWaiting(kWaitingBytes);
  auto waiting = Wait();
  (void)liar->AwaitNotice(v1::BrokerMessage::kPausing);
  liar->cells().word = ipc::kGateOff.bits();
  v1::ClientMessage more;
  more.mutable_acquire()->set_bytes(2 * kMiB);
  more.mutable_acquire()->mutable_wait()->set_seconds(20);
  EXPECT_EQ(liar->Ask(more).error().detail().reason(), v1::PAUSING);
  liar->Park();
  liar->Unmap(liar->AwaitEvict());
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
}

TEST_F(ReclaimGateLiarsTest, GarbageInThePageIsAWord) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  // One client for all of it: a session ends a while after its client.
  const auto client = ConnectAs("waiting");
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 300; ++i) {
    uint64_t word = random();
    const ipc::GateWord seen(word);
    if (seen.parked()) word ^= 1;  // that would be no lie
    liar->cells().word = word;
    liar->cells().left_at_ns = random();
    const absl::Status taken =
        client->Acquire(kWaitingBytes, WaitFor(absl::Milliseconds(5))).status();
    EXPECT_TRUE(absl::IsResourceExhausted(taken)) << taken;
    if (i % 30 == 0) (void)Session(liar->session_id());
  }
  auto* const cells = reinterpret_cast<uint64_t*>(&liar->cells());
  for (size_t i = 0; i < ipc::GatePage::kBytes / sizeof(uint64_t); ++i)
    cells[i] = random() | 1;
  EXPECT_TRUE(Take(kLeftBytes, kLong).ok());
  liar->Park();
  auto waiting = Wait();
  liar->Unmap(liar->AwaitEvict());
  EXPECT_TRUE(waiting.get().ok());
}

TEST_F(ReclaimGateLiarsTest, GarbageOverAClosedGateFailsItsOwnRestore) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  liar->Words(lease)[3] = 3;
  auto waiting = Wait();
  const v1::Evict evict = liar->AwaitEvict();
  liar->cells().word = ipc::kGateOff.bits();  // "open", with a scope in
  EXPECT_EQ(Session(liar->session_id())->gate(), v1::SessionInfo::GATE_CLOSED);
  liar->Unmap(evict);
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
  EXPECT_EQ(Session(liar->session_id())->evicted_bytes(), kLiarBytes);
  liar->cells().word = ~uint64_t{0};
  const uint64_t id = liar->Send(PatientRestore());
  const v1::Map map = liar->AwaitMap();
  liar->SayMapped(lease, map.move());
  const v1::BrokerMessage answer = liar->AwaitAnswer(id);
  EXPECT_EQ(answer.error().detail().reason(), v1::BAD_STATE)
      << answer.ShortDebugString();
  // It goes on as one that has a scope in, and can mend its ways.
  EXPECT_EQ(liar->Words(lease)[3], 3U);
  liar->Park();
  auto again = Wait();
  liar->Unmap(liar->AwaitEvict());
  EXPECT_TRUE(again.get().ok());
}

TEST_F(ReclaimGateLiarsTest, ThePageCannotBeTakenAway) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  EXPECT_EQ(::ftruncate(liar->gate_fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(liar->gate_fd(), 1 << 20), -1);
  EXPECT_EQ(errno, EPERM);
  // A hole is a page of zeros: open, with no scope in.
  (void)::fallocate(liar->gate_fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    0, 4096);
  (void)::fcntl(liar->gate_fd(), F_ADD_SEALS, F_SEAL_WRITE);
  EXPECT_EQ(ipc::LookAtGate(liar->cells()).bits(), 0U);
  EXPECT_TRUE(
      absl::IsResourceExhausted(Take(kWaitingBytes, absl::Milliseconds(100))));
  liar->Park();
  auto waiting = Wait();
  liar->Unmap(liar->AwaitEvict());
  EXPECT_TRUE(waiting.get().ok());
}

// Not mapped, as far as it says: the broker does not ask for what it may not
// have yet.
TEST_F(ReclaimGateLiarsTest, OneThatNeverSaysMappedKeepsNobodysGuarantee) {
  const auto liar = OpenLiar();
  liar->TurnGateOn();
  const uint64_t lease =
      liar->Acquire(kLiarBytes, v1::PRESERVE, /*silent=*/true);
  liar->Park();
  v1::SetTenantRequest request;
  request.set_name("waiting");
  request.mutable_guarantee()->set_bytes(kWaitingBytes);
  const auto changed = SetTenant(request);
  ASSERT_TRUE(changed.ok()) << changed.status();
  if (changed->changes(0).state() == v1::Change::PENDING) {
    EXPECT_TRUE(LeaseOf(lease)->hard());
    EXPECT_TRUE(
        absl::IsResourceExhausted(Take(kWaitingBytes, absl::Seconds(5))));
    return;
  }
  auto waiting = Wait();
  ASSERT_TRUE(AwaitState(lease, v1::LeaseInfo::EVICTING))
      << "a guarantee was applied on the strength of this lease";
  liar->Unmap(liar->AwaitEvict());
  EXPECT_TRUE(waiting.get().ok());
}

}  // namespace
}  // namespace gmb::component
