#ifndef GMB_TESTS_CLIENT_GATE_BIAS_FIXTURE_H_
#define GMB_TESTS_CLIENT_GATE_BIAS_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "client/gate/bias.h"
#include "client/gate/bias_slots.h"
#include "client/gate/idler.h"
#include "tests/client/gate/gate_fixture.h"

namespace gmb::internal {

// Contexts whose work is done, or not, as a test says.
class TestDevices final : public IdlerDevices {
 public:
  bool Record() override {
    ++records;
    return !capture;
  }
  Work Poll() override { return work; }
  bool HeedsPauses() override { return heeds_pauses; }

  int records = 0;
  bool capture = false;
  bool heeds_pauses = true;
  std::atomic<Work> work{Work::kDone};
};

// The biased gate with the test as its broker and its GPU. The parameter:
// whether the system is asked for membarrier; else it is as if it refused.
class BiasTest : public GateTest, public ::testing::WithParamInterface<bool> {
 protected:
  using At = Idler::At;

  void SetUp() override {
    auto fd = ipc::CreateGatePage();
    ASSERT_TRUE(fd.ok()) << fd.status();
    auto broker = ipc::GatePage::Map(fd->get());
    auto client = ipc::GatePage::Map(fd->get());
    ASSERT_TRUE(broker.ok() && client.ok());
    page_ = std::make_unique<ipc::GatePage>(*std::move(broker));
    ipc::GateCells* const shared = &client->cells();
    GateOptions options;
    options.sync_patience = absl::ZeroDuration();
    options.parks_by_itself = false;
    gate_ = std::make_unique<Gate>(*std::move(client), &owner_, options);
    bias_ = std::make_unique<Bias>(shared, gate_.get(), GetParam());
    ASSERT_TRUE(bias_->Begin().ok());
    ASSERT_TRUE(gate_->TurnOn().ok());
    IdlerOptions idling;
    idling.park_after = std::chrono::nanoseconds(0);
    idler_ = std::make_unique<Idler>(shared, bias_.get(), &devices_, idling);
    idler_->SetMayPark(true);
    idler_->Step(now_);  // has seen the counts
  }

  // Steps until the idler is about to do `at`; false when it does not come
  // there.
  bool StepTo(At at) {
    for (int i = 0; i < 20; ++i) {
      if (idler_->at() == at) return true;
      idler_->Step(now_);
    }
    return false;
  }
  // A whole round: until it rests again.
  void Round() {
    do {
      idler_->Step(now_);
    } while (idler_->at() != At::kRest);
  }
  void Park() {
    Round();
    if (!word().parked()) Round();  // a call had counted before the first one
    ASSERT_TRUE(word().parked());
  }

  Bias::Entry Enter() {
    Bias::Entry entry{};
    const absl::Status status = bias_->Enter(*BiasSlots::Mine(), kWait, entry);
    EXPECT_TRUE(status.ok()) << status;
    return entry;
  }
  void Leave(const Bias::Entry& entry) {
    bias_->Leave(*BiasSlots::Mine(), entry);
  }
  void Call() { Leave(Enter()); }

  Idler::TimePoint now_{};
  TestDevices devices_;
  std::unique_ptr<Bias> bias_;
  std::unique_ptr<Idler> idler_;
};

}  // namespace gmb::internal

#endif  // GMB_TESTS_CLIENT_GATE_BIAS_FIXTURE_H_
