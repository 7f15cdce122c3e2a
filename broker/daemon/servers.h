#ifndef GMB_BROKER_DAEMON_SERVERS_H_
#define GMB_BROKER_DAEMON_SERVERS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/config/broker_config.h"
#include "broker/config/flags.h"
#include "broker/core/clock.h"
#include "broker/core/core.h"
#include "broker/core/event_bus.h"
#include "broker/daemon/broker_sockets.h"
#include "broker/daemon/config_watch.h"
#include "broker/daemon/keeping.h"
#include "broker/daemon/reception.h"
#include "broker/daemon/reload.h"
#include "broker/daemon/status_pages.h"
#include "broker/daemon/takeover.h"
#include "broker/gateway/gateway.h"
#include "broker/metrics/event_counts.h"
#include "broker/server/admin_service.h"
#include "broker/server/grpc_server.h"
#include "broker/server/handle_server.h"
#include "broker/server/stream_server.h"
#include "broker/store/quota_store.h"
#include "broker/usage/usage_ledger.h"
#include "ipc/fd_disposer.h"

namespace gmb::broker {

// All that others reach of a broker: its servers, and the parts that answer
// operators. They are started and stopped in order.
class Servers {
 public:
  // All of them outlive it but the core, which may end after Stop.
  struct Deps {
    const Flags* flags;
    const BrokerConfig* config;  // what the broker was started with
    const std::map<std::string, std::string>* uuids;  // the devices', by name
    ipc::FdDisposer* disposer;
    const Clock* clock;
    EventBus* events;
    metrics::EventCounts* counts;
    QuotaStore* store;
    Core* core;
    Keeping* keeping;    // null: all ends with the broker
    Takeover* takeover;  // null too
    BrokerSockets* sockets;
  };
  explicit Servers(const Deps& deps)
      : deps_(deps), watch_(deps.flags->config_file, [this] { Reload(); }) {}

  // Serves when it returns OK.
  absl::Status Start();

  // As Reloader's.
  void Reload() { reloader_->Reload(); }
  [[nodiscard]] absl::Duration drain_deadline() const {
    return reloader_->drain_deadline();
  }
  // The broker is not ready any more.
  void BeginDrain();

  // --- The stop, also where the start has failed.
  // First: no file is read any more.
  void StopReloads();
  // Then ends every session, and removes the sockets. Tenants' directories stay:
  // pods have them mounted and see the sockets of the next broker there.
  void Stop();
  // Behind the core's end: writes what is left.
  void EndUsage() { usage_.reset(); }

 private:
  absl::Status StartHandleServer();
  absl::Status ListenForGrpc();
  void SetUpOperators();
  absl::Status StartGrpc();
  void CloseDoors();

  const Deps deps_;
  std::unique_ptr<Reception> reception_;
  std::unique_ptr<HandleServer> handles_;
  std::unique_ptr<GrpcConnections> grpc_connections_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<CallAuthenticator> calls_;
  std::unique_ptr<Reloader> reloader_;
  ConfigWatch watch_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<StatusPages> pages_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<StreamServer> streams_;
  std::unique_ptr<UsageLedger> usage_;  // null: its file could not be opened
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_SERVERS_H_
