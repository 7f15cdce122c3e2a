#ifndef GMB_TESTS_CLIENT_GATE_GATE_FIXTURE_H_
#define GMB_TESTS_CLIENT_GATE_GATE_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/gate/gate.h"
#include "client/gate/gate_owner.h"
#include "ipc/gate_control.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// Looks until `holds` is true; false when it is not within a minute.
inline bool Await(const std::function<bool()>& holds) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// A session around the gate: its GPU is busy for as long as a test says, and
// its broker is the test, which answers Restore when it likes.
class TestOwner final : public GateOwner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  absl::Status Restore(TimePoint deadline) override {
    base::MutexLock lock(&mu_);
    ++restores_;
    while (!answer_.has_value()) {
      if (!changed_.WaitUntil(&mu_, deadline)) {
        return absl::DeadlineExceededError("no answer");
      }
    }
    return *answer_;
  }
  absl::Status Synchronize() override {
    base::MutexLock lock(&mu_);
    ++synchronizing_;
    while (busy_) changed_.Wait(&mu_);
    --synchronizing_;
    ++synchronized_;
    return gpu_;
  }

  void SetBusy(bool busy) {
    base::MutexLock lock(&mu_);
    busy_ = busy;
    changed_.NotifyAll();
  }
  void SetGpu(absl::Status status) {
    base::MutexLock lock(&mu_);
    gpu_ = std::move(status);
  }
  // Sets what Restore returns from now on; nothing: it waits.
  void SetAnswer(std::optional<absl::Status> answer) {
    base::MutexLock lock(&mu_);
    answer_ = std::move(answer);
    changed_.NotifyAll();
  }
  int restores() {
    base::MutexLock lock(&mu_);
    return restores_;
  }
  int synchronizing() {
    base::MutexLock lock(&mu_);
    return synchronizing_;
  }
  int synchronized() {
    base::MutexLock lock(&mu_);
    return synchronized_;
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status gpu_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> answer_ ABSL_GUARDED_BY(mu_);
  int restores_ ABSL_GUARDED_BY(mu_) = 0;
  int synchronizing_ ABSL_GUARDED_BY(mu_) = 0;
  int synchronized_ ABSL_GUARDED_BY(mu_) = 0;
};

class GateTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kWait = absl::Minutes(1);

  // The broker's view, and a gate on the same page.
  void Make(absl::Duration park_after = absl::ZeroDuration(),
            absl::Duration sync_patience = absl::Milliseconds(1)) {
    auto fd = ipc::CreateGatePage();
    ASSERT_TRUE(fd.ok()) << fd.status();
    auto broker = ipc::GatePage::Map(fd->get());
    auto client = ipc::GatePage::Map(fd->get());
    ASSERT_TRUE(broker.ok() && client.ok());
    page_ = std::make_unique<ipc::GatePage>(*std::move(broker));
    gate_ = std::make_unique<Gate>(*std::move(client), &owner_,
                                   GateOptions{park_after, sync_patience});
  }
  // With the gate on and parked.
  void MakeParked() {
    Make();
    ASSERT_TRUE(gate_->TurnOn().ok());
    ASSERT_TRUE(AwaitState(ipc::GateState::kParked));
  }

  ipc::GateCells& cells() { return page_->cells(); }
  ipc::GateWord word() { return LookAtGate(page_->cells()); }
  bool AwaitState(ipc::GateState state) {
    return Await([&] { return word().state() == state; });
  }
  // The broker's part of bringing the memory back.
  void Reopen() {
    ASSERT_TRUE(ReopenGate(cells(), word()));
    owner_.SetAnswer(absl::OkStatus());
  }

  TestOwner owner_;
  std::unique_ptr<ipc::GatePage> page_;
  std::unique_ptr<Gate> gate_;  // last: its thread uses the owner
};

}  // namespace gmb::internal

#endif  // GMB_TESTS_CLIENT_GATE_GATE_FIXTURE_H_
