// Moves with brokers that lie: the session ends and says why, and what came is
// closed.
#include <sys/mman.h>

#include <functional>
#include <string>
#include <utility>

#include "gmb/client.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;

class ClientMovesLiesTest : public test::ClientGateTest {
 protected:
  static constexpr uint64_t kBytes = 36 * kMiB;  // 5 slabs, 2 frames

  void SetUp() override {
    StartBroker();
    client_ = ConnectOrDie();
    lease_ = *client_->Acquire(kBytes);
    broker().Evict(lease_.id(), 5);
    ASSERT_TRUE(AwaitMoved(5));
    broker().DropSlabs(lease_.id());
  }
  v1::BrokerMessage MapOf(uint64_t move, uint32_t slabs, uint64_t bytes) const {
    v1::BrokerMessage message;
    message.mutable_map()->set_lease_id(lease_.id());
    message.mutable_map()->set_move(move);
    message.mutable_map()->set_slabs(slabs);
    message.mutable_map()->set_bytes(bytes);
    return message;
  }
  // One slab of 2 MiB.
  void SendFrame(uint64_t lease_id, uint64_t move, uint32_t first,
                 uint32_t of) {
    v1::BrokerFrame frame;
    frame.mutable_slabs()->set_lease_id(lease_id);
    frame.mutable_slabs()->set_move(move);
    frame.mutable_slabs()->set_first_slab(first);
    frame.mutable_slabs()->set_slabs_in_lease(of);
    frame.mutable_slabs()->add_slab_bytes(2 * kMiB);
    const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
    broker().SendFrame(frame, {fd.get()});
  }
  void ExpectOver(const std::string& why) {
    ASSERT_TRUE(broker().WaitUntil([&] { return !client_->status().ok(); }));
    const absl::Status status = client_->status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_TRUE(
        broker().WaitUntil([&] { return broker().open_sessions() == 0; }));
    EXPECT_TRUE(broker().WaitUntil([&] {
      return broker().FreeBytes() == 256 * kMiB;
    })) << "no slab is held";
    EXPECT_TRUE(std::move(lease_).Release().ok());
  }

  std::unique_ptr<Client> client_;
  Lease lease_;
};

TEST_F(ClientMovesLiesTest, AMapOfAnotherSize) {
  broker().Say(broker().SendSlabs(lease_.id(), 6, kBytes + 2 * kMiB, 'x'));
  ExpectOver("a Map of");
}

TEST_F(ClientMovesLiesTest, SlabsOfAnotherSizeThanTheMap) {
  (void)broker().SendSlabs(lease_.id(), 6, kBytes - 2 * kMiB, 'x');
  broker().Say(MapOf(6, 5, kBytes));
  ExpectOver("not those announced");
}

TEST_F(ClientMovesLiesTest, MoreSlabsThanTheMap) {
  broker().Say(MapOf(6, 4, kBytes));
  (void)broker().SendSlabs(lease_.id(), 6, kBytes, 'x');
  ExpectOver("not those announced");
}

TEST_F(ClientMovesLiesTest, SlabsAfterTheLast) {
  broker().Say(broker().SendSlabs(lease_.id(), 6, kBytes, 'x'));
  ASSERT_TRUE(AwaitMoved(6));
  SendFrame(lease_.id(), 6, 5, 5);
  ASSERT_TRUE(broker().WaitUntil([&] { return !client_->status().ok(); }));
  EXPECT_THAT(std::string(client_->status().message()),
              HasSubstr("does not continue its lease"));
  EXPECT_EQ(static_cast<char*>(lease_.data())[kBytes - 1], 'x')
      << "what is mapped stays";
}

TEST_F(ClientMovesLiesTest, SlabsThatComeAgainAreNoLie) {
  SendFrame(lease_.id(), 6, 0, 5);  // of a broker that died after it
  const v1::BrokerMessage map = broker().SendSlabs(lease_.id(), 6, kBytes, 'x');
  (void)broker().SendSlabs(lease_.id(), 6, kBytes, 'y');
  broker().Say(map);
  ASSERT_TRUE(AwaitMoved(6));
  EXPECT_FALSE(broker().Moved(6)[0].mapped().has_error());
  EXPECT_EQ(static_cast<char*>(lease_.data())[kBytes - 1], 'x');
  EXPECT_TRUE(client_->status().ok());
}

TEST_F(ClientMovesLiesTest, SlabsThatBeginInTheMiddle) {
  SendFrame(lease_.id(), 6, 1, 5);
  ExpectOver("does not continue its lease");
}

TEST_F(ClientMovesLiesTest, SlabsOfAnEvict) {
  SendFrame(lease_.id(), 5, 0, 1);
  ExpectOver("slabs of a move that is an Evict");
}

TEST_F(ClientMovesLiesTest, AnEvictWhoseSlabsCame) {
  SendFrame(lease_.id(), 6, 0, 1);
  broker().Evict(lease_.id(), 6);
  ExpectOver("slabs of a move that is an Evict");
}

TEST_F(ClientMovesLiesTest, SlabsOfNoMove) {
  SendFrame(lease_.id(), 0, 0, 1);
  ExpectOver("slabs that nobody asked for");
}

TEST_F(ClientMovesLiesTest, OneMoveForTwoThings) {
  broker().Say(MapOf(5, 5, kBytes));
  ExpectOver("a Map with the move of an Evict");
}

TEST_F(ClientMovesLiesTest, SlabsThatCannotBeMappedAreAnsweredWithTheError) {
  for (uint32_t i = 0; i < 18; ++i) SendFrame(lease_.id(), 6, i, 18);
  broker().Say(MapOf(6, 18, kBytes));
  ASSERT_TRUE(AwaitMoved(6));
  EXPECT_TRUE(broker().Moved(6)[0].mapped().has_error()) << "not sealed";
  EXPECT_TRUE(absl::IsFailedPrecondition(lease_.Fill(0, 1, 1)));
  broker().Say(broker().SendSlabs(lease_.id(), 7, kBytes, 'y'));
  ASSERT_TRUE(AwaitMoved(7));
  EXPECT_FALSE(broker().Moved(7)[0].mapped().has_error());
  EXPECT_TRUE(lease_.Fill(0, 1, kBytes).ok());
}

// A broker that took over cannot know that it is: the slabs are the same.
TEST_F(ClientMovesLiesTest, AMapOfAMappedLeaseIsAnsweredAndChangesNothing) {
  broker().Say(broker().SendSlabs(lease_.id(), 6, kBytes, 'x'));
  ASSERT_TRUE(AwaitMoved(6));
  broker().Say(broker().SendSlabs(lease_.id(), 7, kBytes, 'y'));
  ASSERT_TRUE(AwaitMoved(7));
  EXPECT_FALSE(broker().Moved(7)[0].mapped().has_error());
  EXPECT_EQ(static_cast<char*>(lease_.data())[0], 'x');
}

TEST_F(ClientMovesLiesTest, StrangersAreIgnored) {
  for (uint64_t lease = 1000; lease < 4000; ++lease)
    broker().Evict(lease, lease);
  broker().Say(broker().SendSlabs(77, 9, 4 * kMiB, 'x'));
  broker().DropSlabs(77);
  EXPECT_TRUE(client_->GetQuota().ok());
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().FreeBytes() == 256 * kMiB; }));
  EXPECT_TRUE(broker().Moved(9).empty());
}

}  // namespace
}  // namespace gmb
