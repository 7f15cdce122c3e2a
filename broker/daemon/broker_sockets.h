#ifndef GMB_BROKER_DAEMON_BROKER_SOCKETS_H_
#define GMB_BROKER_DAEMON_BROKER_SOCKETS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "broker/core/core.h"
#include "broker/daemon/reload.h"
#include "broker/gateway/gateway.h"
#include "broker/server/admin_service.h"
#include "broker/server/handle_server.h"
#include "broker/socket_directory.h"

namespace gmb::broker {

// The broker's sockets, each in its directory: everybody's, the operators', and
// those of tenants, which come and go as operators and the file make and end
// tenants.
class BrokerSockets {
 public:
  // The directories are what is guarded.
  static constexpr mode_t kMode = 0666;

  explicit BrokerSockets(SocketDirectory directory)
      : directory_(std::move(directory)) {}

  [[nodiscard]] std::string AdminGrpcSocket() ABSL_LOCKS_EXCLUDED(mu_);
  [[nodiscard]] std::string TenantsDirectory() ABSL_LOCKS_EXCLUDED(mu_);

  // --- The start.
  // Says who may enter the directory of a tenant that the broker starts with.
  void AddStartingTenant(const std::string& tenant, const SocketAccess& access);
  // The servers that the sockets lead to, before the first one is made. All of
  // them live until LeadNowhere.
  struct Servers {
    const Core* core = nullptr;
    HandleServer* handles = nullptr;
    Gateway* gateway = nullptr;
  };
  void LeadTo(const Servers& servers) { servers_ = servers; }
  // A tenant can fill its directory with anything; that is its own loss alone,
  // and the log says so.
  absl::Status ListenForTenants();
  // And for operators, whose gRPC socket is there already.
  absl::Status ListenForEverybody() ABSL_LOCKS_EXCLUDED(mu_);

  // --- From then on, all on the operators' thread.
  // The servers end: nothing is opened or closed any more.
  void LeadNowhere() { servers_ = {}; }
  [[nodiscard]] TenantDoors DoorsOfOperators();
  [[nodiscard]] FileDoors DoorsOfFile();

 private:
  absl::Status CheckServing() const;
  absl::Status MakeDirectory(const std::string& tenant)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ListenFor(const std::string& tenant) ABSL_LOCKS_EXCLUDED(mu_);
  void ListenOrWarn(const std::string& tenant);
  absl::Status Open(const std::string& tenant);
  absl::Status OpenAs(const std::string& tenant, const SocketAccess& access);
  absl::StatusOr<SocketAccess> SetAccess(const std::string& tenant,
                                         const SocketAccess& access);
  absl::Status Close(const std::string& tenant) ABSL_LOCKS_EXCLUDED(mu_);

  Servers servers_;
  base::Mutex mu_;  // never together with another lock
  SocketDirectory directory_ ABSL_GUARDED_BY(mu_);
  // After the start, the operators' thread's.
  std::map<std::string, SocketAccess> access_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_BROKER_SOCKETS_H_
