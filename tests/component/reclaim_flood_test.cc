// Floods of requests about gates, and requests about leases of others.
#include <future>
#include <string>

#include "tests/component/reclaim_liars.h"

namespace gmb::component {
namespace {

using ReclaimFloodTest = ReclaimLiarsTest;

constexpr int kFlood = 5'000;

v1::ClientMessage RestoreMessage() {
  v1::ClientMessage message;
  message.mutable_restore()->mutable_wait()->set_seconds(600);
  return message;
}

TEST_F(ReclaimFloodTest, RestoresThatCannotBeServedAreBounded) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  // The first Restore is the head of the queue, which is passed for a second
  // alone, but by requests within a guarantee.
  GuaranteeToWaiting(kWaitingBytes + kLeftBytes);
  const auto holding = ConnectAs("waiting");
  auto held = std::async(std::launch::async, [&] {
    return holding->Acquire(kWaitingBytes, WaitFor(kLong));
  });
  liar->Unmap(liar->AwaitEvict());
  auto in_its_place = held.get();
  ASSERT_TRUE(in_its_place.ok()) << in_its_place.status();
  uint64_t first = 0;
  uint64_t last = 0;
  for (int i = 0; i < kFlood; ++i) {
    last = liar->Send(RestoreMessage());
    if (i == 0) first = last;
  }
  EXPECT_EQ(liar->AwaitAnswer(last).error().detail().reason(),
            v1::TOO_MANY_REQUESTS);
  const absl::Status left = Take(kLeftBytes, kLong);
  EXPECT_TRUE(left.ok()) << left;
  ASSERT_TRUE(std::move(*in_its_place).Release().ok());
  const v1::Map map = liar->AwaitMap();
  liar->SayMapped(lease, map.move());
  EXPECT_TRUE(liar->AwaitAnswer(first).has_restored());
}

TEST_F(ReclaimFloodTest, RestoresOfOneThatIsThereAreAllAnswered) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  uint64_t last = 0;
  for (int i = 0; i < kFlood; ++i) last = liar->Send(RestoreMessage());
  ExpectServed("waiting");
  EXPECT_TRUE(liar->AwaitAnswer(last).has_restored());
}

TEST_F(ReclaimFloodTest, AGateThatIsTurnedOnAndOffAllTheTime) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  uint64_t last = 0;
  for (int i = 0; i < kFlood; ++i) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(i % 2 != 0);
    last = liar->Send(message);
  }
  ExpectServed("waiting");
  EXPECT_TRUE(liar->AwaitAnswer(last).has_gate_set());
  auto waiting = Wait();
  liar->Unmap(liar->AwaitEvict());
  EXPECT_TRUE(waiting.get().ok());
}

TEST_F(ReclaimFloodTest, LeasesOfOthersCannotBeSealed) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  const uint64_t discarded = liar->Acquire(2 * kMiB, v1::DISCARD);
  const auto seal = [&](uint64_t id) {
    v1::ClientMessage message;
    message.mutable_seal()->set_lease_id(id);
    return liar->Ask(message);
  };
  const uint64_t bystanders = lease - 1;
  ASSERT_TRUE(LeaseOf(bystanders).has_value());
  for (const uint64_t id :
       {bystanders, lease + 100, uint64_t{0}, ~uint64_t{0}}) {
    EXPECT_EQ(seal(id).error().detail().reason(), v1::NO_SUCH_LEASE);
  }
  EXPECT_FALSE(LeaseOf(bystanders)->sealed());
  EXPECT_EQ(seal(discarded).error().detail().reason(), v1::BAD_STATE);
  EXPECT_TRUE(seal(lease).has_sealed());
  EXPECT_TRUE(seal(lease).has_sealed());
  for (int i = 0; i < kFlood; ++i) {
    v1::ClientMessage message;
    message.mutable_trimmed()->set_trim(static_cast<uint64_t>(i));
    (void)liar->Send(message);
    message.mutable_set_trimmable()->add_devices()->set_bytes(~uint64_t{0});
    (void)liar->Send(message);
  }
  ExpectServed("waiting");
}

}  // namespace
}  // namespace gmb::component
