// Scopes and captures that come in while the parker waits for the GPU.
#include <atomic>
#include <thread>

#include "client/gate/gate.h"
#include "tests/client/gate/gate_fixture.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

class GateSyncTest : public GateTest {};

TEST_F(GateSyncTest, AScopeTakesTheGateBackFromAParkerThatWaitsTooLong) {
  Make();
  owner_.SetBusy(true);
  ASSERT_TRUE(gate_->TurnOn().ok());
  ASSERT_TRUE(AwaitState(GateState::kSync));
  ASSERT_TRUE(gate_->Enter(kWait).ok());
  EXPECT_EQ(word(), GateWord(GateState::kOpen, 1, 1));
  EXPECT_EQ(owner_.synchronizing(), 1);
  // The GPU becomes quiet: too late for this park.
  owner_.SetBusy(false);
  EXPECT_TRUE(Await([&] { return owner_.synchronized() == 1; }));
  EXPECT_EQ(word(), GateWord(GateState::kOpen, 1, 1));
  EXPECT_TRUE(gate_->Leave());
  EXPECT_TRUE(AwaitState(GateState::kParked));
  EXPECT_EQ(owner_.restores(), 0);
}

TEST_F(GateSyncTest, APatientScopeWaitsUntilTheGateIsParked) {
  Make(absl::ZeroDuration(), kWait);
  owner_.SetBusy(true);
  ASSERT_TRUE(gate_->TurnOn().ok());
  ASSERT_TRUE(AwaitState(GateState::kSync));
  std::atomic<bool> in{false};
  std::thread scope([&] {
    EXPECT_TRUE(gate_->Enter(kWait).ok());
    in = true;
    EXPECT_TRUE(gate_->Leave());
  });
  EXPECT_FALSE(in);
  owner_.SetBusy(false);
  scope.join();
  EXPECT_GE(word().epoch(), 1u);
}

TEST_F(GateSyncTest, ACaptureWaitsForTheParkerAndBeginsAfterIt) {
  Make();
  owner_.SetBusy(true);
  ASSERT_TRUE(gate_->TurnOn().ok());
  ASSERT_TRUE(AwaitState(GateState::kSync));
  EXPECT_EQ(gate_->EnterCapture(absl::Milliseconds(5)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(word().state(), GateState::kSync);
  std::thread capture([&] {
    EXPECT_TRUE(gate_->EnterCapture(kWait).ok());
    EXPECT_EQ(owner_.synchronizing(), 0);
    EXPECT_TRUE(gate_->Leave());
  });
  owner_.SetBusy(false);
  capture.join();
}

// The gate is open again, and yet a capture must not begin.
TEST_F(GateSyncTest, ACaptureBesideAScopeThatTookTheGateBackWaits) {
  Make();
  owner_.SetBusy(true);
  ASSERT_TRUE(gate_->TurnOn().ok());
  ASSERT_TRUE(AwaitState(GateState::kSync));
  ASSERT_TRUE(gate_->Enter(kWait).ok());  // takes the gate back
  EXPECT_EQ(gate_->EnterCapture(absl::Milliseconds(5)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(gate_->depth(), 1u);
  std::atomic<bool> refused{false};
  std::thread other([&] {
    EXPECT_EQ(gate_->EnterCapture(absl::Milliseconds(5)).code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(gate_->depth(), 0u);
    refused = true;
    EXPECT_TRUE(gate_->EnterCapture(kWait).ok());
    EXPECT_EQ(owner_.synchronizing(), 0);
    EXPECT_TRUE(gate_->Leave());
  });
  // In, and out again, and in once more.
  EXPECT_TRUE(Await([&] { return refused && word().scopes() == 2; }));
  owner_.SetBusy(false);
  other.join();
  EXPECT_EQ(word().scopes(), 1u);
  EXPECT_TRUE(gate_->EnterCapture(kWait).ok());
  EXPECT_TRUE(gate_->Leave());
  EXPECT_TRUE(gate_->Leave());
}

TEST_F(GateSyncTest, ADeviceThatCannotBeSynchronisedKeepsTheGateOpen) {
  Make();
  owner_.SetGpu(absl::InternalError("the context is lost"));
  ASSERT_TRUE(gate_->TurnOn().ok());
  EXPECT_TRUE(Await([&] { return owner_.synchronized() >= 2; }));
  EXPECT_NE(word().state(), GateState::kParked);
  EXPECT_TRUE(gate_->Enter(kWait).ok());
  EXPECT_TRUE(gate_->Leave());
  owner_.SetGpu(absl::OkStatus());
  EXPECT_TRUE(AwaitState(GateState::kParked));
}

}  // namespace
}  // namespace gmb::internal
