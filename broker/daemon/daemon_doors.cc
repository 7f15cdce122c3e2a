// Tenants' sockets: at the start, and as operators and the file make and end
// tenants; and streams that come by them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/daemon/daemon.h"
#include "broker/log/logging.h"
#include "proto/error_status.h"

namespace gmb::broker {

// A tenant can fill its directory with anything; that is its own loss alone.
absl::Status Daemon::ListenForTenantsAtStart() {
  for (const auto& [tenant, access] : access_) {
    GMB_RETURN_IF_ERROR(MakeTenantDirectory(tenant));
    ListenOrWarn(tenant);
  }
  return absl::OkStatus();
}

void Daemon::ListenOrWarn(const std::string& tenant) {
  const absl::Status listening = ListenForTenant(tenant);
  if (listening.ok()) return;
  LogEvent(LogLevel::kWarning, "tenant_directory",
           {{"tenant", tenant}, {"message", listening.message()}});
}

absl::Status Daemon::MakeTenantDirectory(const std::string& tenant) {
  const auto access = access_.find(tenant);
  base::MutexLock lock(&sockets_mu_);
  return sockets_.AddTenant(
      tenant, access == access_.end() ? SocketAccess{} : access->second);
}

absl::Status Daemon::ListenForTenant(const std::string& tenant) {
  std::string grpc;
  std::string handles;
  {
    base::MutexLock lock(&sockets_mu_);
    grpc = sockets_.TenantGrpcSocket(tenant);
    handles = sockets_.TenantHandleSocket(tenant);
  }
  // The handle socket is what clients look for first, so it comes last.
  absl::Status listening =
      gateway_->AddDoor(grpc, kSocketMode,
                        {.origin = Origin::kTenantDirectory, .tenant = tenant});
  if (!listening.ok()) return listening;
  listening = handles_->AddListener(handles, kSocketMode,
                                    Origin::kTenantDirectory, tenant);
  // Half a door would be in the way of the next try.
  if (!listening.ok()) (void)gateway_->RemoveDoor(grpc);
  return listening;
}

// A tenant that an operator makes is not the one that the file had.
absl::Status Daemon::OpenDoor(const std::string& tenant) {
  if (!core_->GetPolicy(tenant).ok()) access_.erase(tenant);
  absl::Status opened = MakeTenantDirectory(tenant);
  if (opened.ok()) opened = ListenForTenant(tenant);
  return opened;
}

absl::Status Daemon::CloseDoor(const std::string& tenant) {
  base::MutexLock lock(&sockets_mu_);
  absl::Status closed =
      handles_->RemoveListener(sockets_.TenantHandleSocket(tenant));
  closed.Update(gateway_->RemoveDoor(sockets_.TenantGrpcSocket(tenant)));
  closed.Update(sockets_.RemoveTenant(tenant));
  return closed;
}

FileDoors Daemon::DoorsOfFile() {
  return {.open =
              [this](const std::string& tenant, const SocketAccess& access) {
                return OpenDoorAs(tenant, access);
              },
          .set_access =
              [this](const std::string& tenant, const SocketAccess& access) {
                return SetAccess(tenant, access);
              },
          .close =
              [this](const std::string& tenant) {
                access_.erase(tenant);
                return CloseDoor(tenant);
              }};
}

absl::Status Daemon::OpenDoorAs(const std::string& tenant,
                                const SocketAccess& access) {
  access_[tenant] = access;
  if (absl::Status made = MakeTenantDirectory(tenant); !made.ok()) {
    access_.erase(tenant);
    return made;
  }
  ListenOrWarn(tenant);
  return absl::OkStatus();
}

absl::StatusOr<SocketAccess> Daemon::SetAccess(const std::string& tenant,
                                               const SocketAccess& access) {
  const SocketAccess before = std::exchange(access_[tenant], access);
  if (before == access) return before;
  absl::Status made = MakeTenantDirectory(tenant);
  if (made.ok()) return before;
  access_[tenant] = before;
  return absl::Status(made.code(),
                      absl::StrCat("tenant ", tenant, ": ", made.message()));
}

// The token counts where gRPC's connections would let it count: from the process
// that has greeted, at the directory where it has. On the handle server's
// thread, which meets nobody before streams_ is there.
absl::Status Daemon::OpenStream(const StreamPeer& peer,
                                StreamConnection connection) {
  const std::vector<uint64_t> sessions =
      admission_.SessionsOf(peer.door, ProcessOf(peer.pidfd.get(), peer.pid));
  // Of the transport, as for gRPC: a session of it may live on elsewhere, with
  // the keeper.
  if (sessions.empty() && peer.door.origin != Origin::kAdmin) {
    return absl::UnavailableError(
        "this process has no session at this socket: greet first");
  }
  GMB_ASSIGN_OR_RETURN(const Caller caller,
                       core_->Authenticate(peer.token, peer.pid));
  if (!caller.is_operator && std::find(sessions.begin(), sessions.end(),
                                       caller.session) == sessions.end()) {
    return proto::MakeError(
        v1::NO_SESSION,
        "this process has not greeted for that session at this socket");
  }
  return streams_->Open(std::move(connection), caller);
}

}  // namespace gmb::broker
