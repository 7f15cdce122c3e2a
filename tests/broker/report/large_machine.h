#ifndef GMB_TESTS_BROKER_REPORT_LARGE_MACHINE_H_
#define GMB_TESTS_BROKER_REPORT_LARGE_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "broker/core/device_tasks.h"
#include "broker/core/in_process_keeper.h"
#include "broker/machine/machine.h"
#include "ipc/gate_page.h"

namespace gmb::broker {

// A machine with a simulated device that has done all it was given when a call
// returns. Nothing is checked in between, so that it can be made large. A copy
// has the same device, and can be made in a small part of the time.
class LargeMachine {
 public:
  static constexpr uint64_t kGranule = uint64_t{2} << 20;

  explicit LargeMachine(uint64_t pool_bytes);
  LargeMachine(const LargeMachine& other) = default;
  LargeMachine& operator=(const LargeMachine& other) = delete;

  [[nodiscard]] const State& state() const { return machine_.state(); }
  [[nodiscard]] quota::Instant now() const { return now_; }

  void SetTenant(const std::string& name, bool may_terminate = false);
  // Its id. It has no pidfd.
  uint64_t Connect(const std::string& tenant);
  void Close(uint64_t session);
  // Of one granule, or of so many that it waits, for an hour. The request's id.
  uint64_t Acquire(uint64_t session, uint64_t granules = 1);
  void Release(uint64_t session, uint64_t lease);
  void Cancel(uint64_t session, uint64_t request);

  // Called as each turn begins, and as it has ended.
  std::function<void(bool begins)> on_turn = [](bool) {};

 private:
  struct Device {
    explicit Device(uint64_t bytes);

    InProcessKeeper keeper;
    std::atomic<SlabId> slab_ids{1};
    std::unique_ptr<DeviceTasks> tasks;
  };

  template <typename Work>
  void Do(const Work& work);
  void Send(uint64_t session, v1::ClientMessage message);

  Machine machine_;
  std::shared_ptr<Device> device_;
  quota::PoolId pool_;
  quota::Instant now_{1'000'000'000};
  std::map<uint64_t, std::shared_ptr<ipc::GateCells>> gates_;  // by session
  uint64_t last_request_ = 0;
  int last_pid_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_REPORT_LARGE_MACHINE_H_
