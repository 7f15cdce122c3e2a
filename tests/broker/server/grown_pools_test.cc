// Stored sizes of pools, with a core and a store of their own.
#include "broker/server/grown_pools.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/broker/server/admin_parts_fixture.h"

namespace gmb::broker {
namespace {

TEST(HasSizeTest, ASizeIsRoundedToGranulesAndAShareFits) {
  v1::PoolStatus pool;
  pool.mutable_device()->set_granularity_bytes(10);
  pool.set_target_bytes(50);
  EXPECT_TRUE(HasSize(pool, quota::Amount::Bytes(59)));
  EXPECT_FALSE(HasSize(pool, quota::Amount::Bytes(60)));
  EXPECT_TRUE(HasSize(pool, quota::Amount::Fraction(0.9)));
}

// The pool has 64 MiB.
class GrownPoolsTest : public AdminPartsFixture {
 protected:
  void SetUp() override {
    AdminPartsFixture::SetUp();
    device_ = core.Status().pools(0).device().uuid();
    Store(96 * kMiB);
    not_in_force_.Drop(DroppedPool(device_), "its size does not fit.");
    pools_.Start();
    Finish();
  }
  void TearDown() override {
    pools_.Stop();
    Finish();
  }
  void Store(uint64_t bytes) {
    ASSERT_TRUE(
        store_->PutPoolTarget(device_, quota::Amount::Bytes(bytes), Record())
            .ok());
  }
  // Returns when it was listened to, and what it gave rise to is done.
  void Tell(const std::string& kind) {
    std::promise<void> delivered;
    const uint64_t listener = events.Subscribe([&](const v1::Event& event) {
      if (event.kind() == "test_end") delivered.set_value();
    });
    for (const std::string& told : {kind, std::string("test_end")}) {
      v1::Event event;
      event.set_kind(told);
      event.set_device(device_);
      events.Publish(event);
    }
    events.Wake();
    delivered.get_future().wait();
    events.Unsubscribe(listener);
    Finish();
  }

  std::string device_;
  GrownPools pools_{&core, store_.get(), &events, &not_in_force_, &calls_};
};

TEST_F(GrownPoolsTest, ASizeIsSettledOnceThePoolHasGrownToIt) {
  Tell("pool_grown");
  EXPECT_EQ(not_in_force_.size(), 1U) << "it is still less";
  Store(64 * kMiB);
  Tell("tenant_changed");
  EXPECT_EQ(not_in_force_.size(), 1U);
  Tell("pool_grown");
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(GrownPoolsTest, OneThatGrewBeforeItListenedIsSettledAtOnce) {
  Store(64 * kMiB);
  GrownPools late(&core, store_.get(), &events, &not_in_force_, &calls_);
  late.Start();
  Finish();
  EXPECT_EQ(not_in_force_.size(), 0U);
  late.Stop();
}

}  // namespace
}  // namespace gmb::broker
