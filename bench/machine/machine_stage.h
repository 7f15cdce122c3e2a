// A Machine alone, with everything around it played at once: devices and copies
// succeed, clients answer. Each event's thread CPU time is measured.
#ifndef GMB_BENCH_MACHINE_MACHINE_STAGE_H_
#define GMB_BENCH_MACHINE_MACHINE_STAGE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/machine/machine.h"
#include "ipc/gate_page.h"

namespace gmb::bench {

class MachineStage {
 public:
  static constexpr uint64_t kGranule = uint64_t{2} << 20;

  MachineStage(const broker::MachineOptions& options, uint64_t host_pool_bytes);

  void AddPool(const std::string& uuid, uint64_t bytes);
  // The guarantee is on gpu-1 alone.
  void SetTenant(const std::string& name, uint64_t guarantee, uint64_t limit);
  enum class Gate { kOff, kActive, kParked };
  // The session's number.
  uint64_t Connect(const std::string& tenant, Gate gate);
  // The lease's number; 0: it waits, or was refused.
  uint64_t Acquire(uint64_t session, const std::string& uuid, uint64_t bytes,
                   int64_t wait_seconds);
  void Release(uint64_t session, uint64_t lease);
  void Close(uint64_t session);
  void Resize(const std::string& uuid, uint64_t bytes);
  void Drain(const std::string& uuid);
  void Park(uint64_t session);

  // Time is that of the computer and, beyond it, what was skipped.
  [[nodiscard]] quota::Instant now() const;
  void Skip(quota::Nanoseconds by) { skipped_ += by; }
  [[nodiscard]] quota::Instant Due() const { return due_; }
  // As the ticker's thread comes between those of others.
  void TickIfDue();
  void Tick();

  // Of all events since the last call of Forget.
  struct Longest {
    double us = 0;
    std::string event;
  };
  void Forget() { longest_ = {}, spent_us_ = 0, ticks_ = 0; }
  [[nodiscard]] const Longest& longest() const { return longest_; }
  [[nodiscard]] double spent_us() const { return spent_us_; }
  [[nodiscard]] uint64_t ticks() const { return ticks_; }
  [[nodiscard]] bool was_evicted(uint64_t session) const {
    return evicted_.contains(session);
  }
  [[nodiscard]] const broker::State& state() const { return machine_.state(); }

 private:
  struct Client {
    std::shared_ptr<ipc::GateCells> cells;
    uint64_t last_request = 0;
    uint64_t last_lease = 0;
  };
  template <typename Work>
  void Event(const char* what, const Work& work);
  void Deliver(std::vector<broker::Effect> effects);
  void Put(const broker::Say& say);
  void Put(const broker::Give& give);
  void Put(const broker::CopySlab& copy);
  template <typename Other>
  void Put(const Other& /*ignored*/) {}
  uint64_t Send(uint64_t session, const char* what, v1::ClientMessage message);

  broker::Machine machine_;
  std::map<uint64_t, Client> clients_;
  std::deque<std::function<void()>> follow_;  // what effects lead to
  bool following_ = false;
  std::set<uint64_t> evicted_;  // sessions
  std::map<quota::PoolId, uint64_t> baselines_;
  uint64_t last_slab_ = 0;
  pid_t last_pid_ = 100;
  quota::Nanoseconds skipped_{0};
  quota::Instant due_ = quota::Instant::Max();
  Longest longest_;
  double spent_us_ = 0;
  uint64_t ticks_ = 0;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_MACHINE_MACHINE_STAGE_H_
