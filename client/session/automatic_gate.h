#ifndef GMB_CLIENT_SESSION_AUTOMATIC_GATE_H_
#define GMB_CLIENT_SESSION_AUTOMATIC_GATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/gate/bias.h"
#include "client/gate/idler.h"
#include "client/session/session.h"

namespace gmb::internal {

struct AutomaticGateOptions {
  IdlerOptions idling = {};
  // Its person has said that it may be parked whatever is seen: then a GPU at
  // work refuses the one Evict, and nothing more.
  bool parks_forced = false;
  // The group whose sessions are lent together or not at all; empty: none.
  std::string group = {};
  // On any thread: something that whoever runs the program should know.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// The gate of a program that nobody changed: its calls are marked, and a thread
// parks it (docs/biased_gate.md). The session's memory is lent only once the
// process was seen quiet: until then, and again after a pause that did not find
// it quiet in time, the gate is off at the broker.
//
// Thread-safe. `gmb run` makes it once in a process and never destroys it: a call
// may be in it at any time.
class AutomaticGate {
 public:
  // The session was opened for an automatic gate, and lives on with it.
  // `devices` outlives it.
  AutomaticGate(std::shared_ptr<Session> session, IdlerDevices* devices,
                AutomaticGateOptions options);
  AutomaticGate(const AutomaticGate&) = delete;
  AutomaticGate& operator=(const AutomaticGate&) = delete;
  // No call may be in it, or come.
  ~AutomaticGate();

  // Before the first lease. Starts the thread.
  [[nodiscard]] absl::Status Begin();

  [[nodiscard]] Bias& bias() { return bias_; }

  // As BiasCalls has them.
  [[nodiscard]] bool EnterSlowly(BiasSlot& slot, Bias::Entry& entry);
  void NeverPark(const std::string& why);
  void JoinGroup(const std::string& group, uint32_t members);
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  // Keeps two threads from using `devices` at once, and Stop from returning
  // while they are used.
  class GuardedDevices final : public IdlerDevices {
   public:
    explicit GuardedDevices(IdlerDevices* devices) : devices_(*devices) {}
    bool Record() override;
    Work Poll() override;
    bool HeedsPauses() override { return devices_.HeedsPauses(); }
    void Stop();

   private:
    base::Mutex mu_;
    bool stopped_ ABSL_GUARDED_BY(mu_) = false;
    IdlerDevices& devices_;
  };

  // Before a lease is unmapped, on the mover's thread: the GPU is asked once
  // more. One that is at work time and again was given it past the gate.
  [[nodiscard]] absl::Status Witness();
  int CountBusy();
  [[nodiscard]] IdlerDevices::Work AskDevices();

  void Run();
  [[nodiscard]] Clock::time_point StepOrSwitch(Clock::time_point now);
  [[nodiscard]] bool MeansIdle(Clock::time_point quiet) const;
  [[nodiscard]] bool SessionOver();
  [[nodiscard]] bool PausedAndThere() const;
  [[nodiscard]] absl::Duration WaitNow(bool pausing) ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] Clock::time_point StayOff(const std::string& why,
                                          Clock::time_point now);
  void TurnOn(Clock::time_point now);
  [[nodiscard]] absl::Status TurnOff();
  // Joins the group that a thread of the program waits to be in, if one does.
  // False: it is not in it yet.
  [[nodiscard]] bool JoinWanted();
  [[nodiscard]] absl::Status Join(const std::string& group);
  [[nodiscard]] bool Sleep(Clock::time_point until) ABSL_LOCKS_EXCLUDED(mu_);
  void Wake();
  [[nodiscard]] bool stopped() ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] std::string never() ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] bool RestAfter(const absl::Status& refused,
                               Clock::time_point began, bool& said);

  const std::shared_ptr<Session> session_;
  const AutomaticGateOptions options_;
  GuardedDevices devices_;
  Bias bias_;

  // Of the thread alone.
  Idler idler_;
  std::string group_;           // whose sessions are lent together
  uint32_t group_members_ = 0;  // that it is to have; 0: it has had them
  bool on_ = false;             // the broker may take the memory
  bool never_said_ = false;     // to the broker
  int pauses_failed_ = 0;       // that it has seen
  bool owes_turn_off_ = false;  // once the pause is over
  const Clock::time_point began_ = Clock::now();
  Clock::time_point not_on_before_{};

  int busy_witnesses_ = 0;       // in a row; of the mover's thread alone
  Clock::time_point last_busy_;  // likewise

  std::atomic<bool> lost_said_{false};

  base::Mutex mu_;
  base::CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::string never_ ABSL_GUARDED_BY(mu_);
  // The group that a thread waits to be in, until the process is in it.
  struct Wanted {
    std::string group;
    uint32_t members = 0;
  };
  std::optional<Wanted> wanted_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_AUTOMATIC_GATE_H_
