// The order in which the core's effects reach a device's copier.
#include "broker/core/couriers.h"

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/in_process_keeper.h"
#include "device/copy_engine.h"
#include "device/hostpool/copier.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;
constexpr quota::PoolId kPool{1};

// Its first mapping, and so all that is queued behind it, waits until it may go
// on.
class WaitingEngine final : public device::CopyEngine {
 public:
  explicit WaitingEngine(std::shared_future<void> may_go_on)
      : may_go_on_(std::move(may_go_on)), slab_(kBytes) {}
  absl::StatusOr<void*> Map(const device::ShareableHandle& /*slab*/,
                            uint64_t /*bytes*/) override {
    may_go_on_.wait();
    return slab_.data();
  }
  absl::Status Unmap(void* /*slab*/, uint64_t /*bytes*/) override {
    return absl::OkStatus();
  }
  absl::Status Begin(device::CopyDirection /*direction*/, void* /*slab*/,
                     void* /*host*/, uint64_t /*bytes*/) override {
    return absl::OkStatus();
  }
  absl::Status FinishOldest() override { return absl::OkStatus(); }

 private:
  const std::shared_future<void> may_go_on_;
  std::vector<char> slab_;
};

class CouriersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pool =
        device::HostPool::Create({.bytes = 4 * kBytes, .threads = 1}, nullptr);
    ASSERT_TRUE(pool.ok()) << pool.status();
    host_pool_ = *std::move(pool);
    const std::shared_future<void> may_go_on = go_on_.get_future().share();
    couriers_.AddDevice(kPool, {.worker = nullptr,
                                .copier = std::make_unique<device::Copier>(
                                    host_pool_.get(),
                                    std::make_unique<WaitingEngine>(may_go_on),
                                    std::make_unique<WaitingEngine>(may_go_on),
                                    device::CopyPacing{})});
    couriers_.SetCopied(
        [this](quota::LeaseId lease, const absl::Status& status) {
          answers_.at(lease.value).set_value(status);
        });
  }
  // Lease 1 is slab 1, in group 1, and so on.
  CopySlab CopyOut(uint64_t lease) {
    EXPECT_TRUE(keeper_.Put(lease, device::IpcHandle{}).ok());
    answers_[lease];
    return {.pool = kPool,
            .lease = quota::LeaseId{lease},
            .slab = lease,
            .group = lease,
            .slab_bytes = kBytes,
            .room = {{lease * kBytes, kBytes}}};
  }
  absl::Status AnswerTo(uint64_t lease) {
    return answers_.at(lease).get_future().get();
  }

  std::map<uint64_t, std::promise<absl::Status>> answers_;
  std::promise<void> go_on_;
  InProcessKeeper keeper_;
  EventBus events_;
  std::unique_ptr<device::HostPool> host_pool_;
  Couriers couriers_{&keeper_, &events_};
};

TEST_F(CouriersTest, ACancelComesAfterTheCopyOfTheSameTurn) {
  couriers_.Deliver({CopyOut(1), CopyOut(2), CancelCopies{kPool, 2}}).Run();
  go_on_.set_value();
  EXPECT_TRUE(AnswerTo(1).ok());
  EXPECT_TRUE(absl::IsCancelled(AnswerTo(2)));
}

// Two threads run the errands of two turns, in any order.
TEST_F(CouriersTest, ACancelComesAfterTheCopyOfAnEarlierTurn) {
  Errands copies = couriers_.Deliver({CopyOut(1), CopyOut(2)});
  Errands cancel = couriers_.Deliver({CancelCopies{kPool, 2}});
  cancel.Run();
  copies.Run();
  go_on_.set_value();
  EXPECT_TRUE(AnswerTo(1).ok());
  EXPECT_TRUE(absl::IsCancelled(AnswerTo(2)));
}

}  // namespace
}  // namespace gmb::broker
