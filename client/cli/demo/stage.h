#ifndef GMB_CLIENT_CLI_DEMO_STAGE_H_
#define GMB_CLIENT_CLI_DEMO_STAGE_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/cast.h"
#include "client/cli/demo/check_list.h"
#include "client/cli/demo/monitor.h"
#include "client/cli/demo/screen.h"
#include "client/cli/demo/watch.h"

namespace gmb::cli {

// The same clock in every process of a machine.
[[nodiscard]] int64_t MonotonicNanoseconds();

// The stage of all acts of the demo: the steps that they share, each told on the
// screen. Used by one thread. A status ends the demo: it is pointless to go on.
// A result that is merely wrong goes on the check list.
class Stage {
 public:
  struct Parts {
    BrokerProcess* broker;
    Screen* screen;
    CheckList* checks;
    std::string dir;  // for logs
    std::stop_token stop;
    int interrupt_fd = -1;
  };
  explicit Stage(const Parts& parts);

  // Learns the pool's size; call first.
  absl::Status Open();

  // --- Steps.
  void BeginAct(const std::string& title);
  void Say(Tone tone, const std::string& text) const {
    parts_.screen->Say(tone, text);
  }
  // Time to read, where somebody watches.
  void LetPeopleLook() const;
  void Check(bool passed, const std::string& claim,
             const std::string& measured) const;
  // Starts (again) the process of a tenant.
  absl::Status Enter(const std::string& tenant);
  // Leases and fills, at once or within `wait`; an error when it is refused.
  absl::Status Lease(const std::string& tenant, const std::string& name,
                     uint64_t bytes);
  absl::Status Release(const std::string& tenant, const std::string& name);
  // Asks, and says how it was refused; an error when it was granted instead.
  absl::StatusOr<Json> LeaseRefused(const std::string& tenant, uint64_t bytes);
  // Asks with time to wait, and returns once the broker has put it in its
  // queue.
  absl::Status LeaseWaits(const std::string& tenant, const std::string& name,
                          uint64_t bytes, bool expect_zero = false);
  // The end of LeaseWaits: the event of the grant, after the memory was filled.
  absl::StatusOr<Json> AwaitGrant(const std::string& tenant);
  // Every process checks every byte it holds.
  absl::Status VerifyAll();
  // An operator's change of a tenant's limit.
  absl::StatusOr<v1::Change> SetLimit(const std::string& tenant,
                                      double fraction);
  absl::Status Quit(const std::string& tenant);
  // SIGKILL to the tenant's process.
  void Kill(const std::string& tenant);
  // SIGKILL to the broker; until it was started again nobody may be asked about
  // it. How long the next one took to answer.
  absl::Status KillBroker();
  absl::StatusOr<absl::Duration> StartBrokerAgain();

  // --- The present state.
  [[nodiscard]] Cast& cast() { return cast_; }
  [[nodiscard]] Monitor& monitor() { return watch_.monitor(); }
  [[nodiscard]] const AdminClient& admin() const {
    return parts_.broker->admin();
  }
  // A twentieth of the pool, in whole units of the device.
  [[nodiscard]] uint64_t Twentieths(uint64_t count) const {
    return count * twentieth_;
  }
  [[nodiscard]] uint64_t capacity_bytes() const { return capacity_; }

  // Ends the monitor; the broker may be stopped afterwards.
  Monitor::Findings Close() { return watch_.End(); }

 private:
  const Parts parts_;
  Watch watch_;
  Cast cast_;
  uint64_t twentieth_ = 0;
  uint64_t capacity_ = 0;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_STAGE_H_
