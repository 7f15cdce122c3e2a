#ifndef GMB_BROKER_DAEMON_DAEMON_H_
#define GMB_BROKER_DAEMON_DAEMON_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/config/broker_config.h"
#include "broker/core/clock.h"
#include "broker/core/event_bus.h"
#include "broker/daemon/broker_sockets.h"
#include "broker/daemon/keeping.h"
#include "broker/daemon/live_core.h"
#include "broker/daemon/servers.h"
#include "broker/daemon/state_directory.h"
#include "broker/daemon/takeover.h"
#include "broker/socket_directory.h"
#include "broker/store/quota_store.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// A whole broker: devices, core, stores and servers, put together and taken
// apart in order.
//
// Stopping: BeginDrain (no new grants, clients told), then the destructor,
// which ends the sessions, then the servers, then the core and its devices. A
// process that ends without all that leaves what its keeper has to the next
// broker.
class Daemon {
 public:
  // Serves when it returns. `config` as LoadConfig gave it for the flags.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(BrokerConfig config,
                                                       const Flags& flags);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Has the configuration file and the token files read again, soon.
  void Reload() { servers_->Reload(); }

  [[nodiscard]] StateDirectory& state() { return state_; }
  // For the watchdog: OK when the core's lock is to be had and operators are
  // answered. Waits for the lock without an end, and for them for `patience`.
  [[nodiscard]] absl::Status LookAlive(absl::Duration patience);

  // Whether the next broker would find all that this one has promised.
  [[nodiscard]] bool KeeperHasAll() const {
    return keeping_ != nullptr && !keeping_->lost();
  }

  void BeginDrain();
  [[nodiscard]] absl::Duration drain_deadline() const {
    return servers_->drain_deadline();
  }
  // Whether no tenant has a session left.
  [[nodiscard]] bool IsEmpty() const {
    return live_core_->core()->TenantSessions() == 0;
  }

 private:
  Daemon(BrokerConfig config, Flags flags, SocketDirectory directory);

  absl::Status OpenKeeping();
  absl::Status SetUpCore();
  absl::Status AddStartingTenants(const Declared& before,
                                  const Declared& declared);
  absl::Status StartServers();

  const BrokerConfig config_;
  const Flags flags_;
  std::map<std::string, std::string> uuids_;  // constant after the start
  // Before all that close peers' sockets.
  std::unique_ptr<ipc::FdDisposer> disposer_;
  BrokerSockets sockets_;
  StateDirectory state_{&config_};

  SystemClock clock_;
  EventBus events_;
  std::unique_ptr<Keeping> keeping_;    // null: all ends with the broker
  std::unique_ptr<Takeover> takeover_;  // null too
  std::unique_ptr<LiveCore> live_core_;
  std::unique_ptr<Servers> servers_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_DAEMON_H_
