// The broker's sockets: at the start, and as operators and the file make and end
// tenants.
#include "broker/daemon/broker_sockets.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {

std::string BrokerSockets::AdminGrpcSocket() {
  base::MutexLock lock(&mu_);
  return directory_.AdminGrpcSocket();
}

std::string BrokerSockets::TenantsDirectory() {
  base::MutexLock lock(&mu_);
  return directory_.TenantsDirectory();
}

void BrokerSockets::AddStartingTenant(const std::string& tenant,
                                      const SocketAccess& access) {
  access_[tenant] = access;
}

absl::Status BrokerSockets::ListenForTenants() {
  for (const auto& [tenant, access] : access_) {
    GMB_RETURN_IF_ERROR(MakeDirectory(tenant));
    ListenOrWarn(tenant);
  }
  return absl::OkStatus();
}

absl::Status BrokerSockets::ListenForEverybody() {
  std::string grpc;
  std::string shared;
  std::string admin;
  {
    base::MutexLock lock(&mu_);
    grpc = directory_.GrpcSocket();
    shared = directory_.HandleSocket();
    admin = directory_.AdminHandleSocket();
  }
  absl::Status listening =
      servers_.gateway->AddDoor(grpc, kMode, {.origin = Origin::kShared});
  listening.Update(
      servers_.handles->AddListener(shared, kMode, Origin::kShared));
  // The last: a broker that answers its operators has room for everybody.
  listening.Update(servers_.handles->AddListener(admin, kMode, Origin::kAdmin));
  return listening;
}

void BrokerSockets::ListenOrWarn(const std::string& tenant) {
  const absl::Status listening = ListenFor(tenant);
  if (listening.ok()) return;
  LogEvent(LogLevel::kWarning, "tenant_directory",
           {{"tenant", tenant}, {"message", listening.message()}});
}

absl::Status BrokerSockets::MakeDirectory(const std::string& tenant) {
  const auto access = access_.find(tenant);
  base::MutexLock lock(&mu_);
  return directory_.AddTenant(
      tenant, access == access_.end() ? SocketAccess{} : access->second);
}

absl::Status BrokerSockets::ListenFor(const std::string& tenant) {
  std::string grpc;
  std::string handles;
  {
    base::MutexLock lock(&mu_);
    grpc = directory_.TenantGrpcSocket(tenant);
    handles = directory_.TenantHandleSocket(tenant);
  }
  // The handle socket is what clients look for first, so it comes last.
  absl::Status listening = servers_.gateway->AddDoor(
      grpc, kMode, {.origin = Origin::kTenantDirectory, .tenant = tenant});
  if (!listening.ok()) return listening;
  listening = servers_.handles->AddListener(handles, kMode,
                                            Origin::kTenantDirectory, tenant);
  // Half a door would be in the way of the next try.
  if (!listening.ok()) (void)servers_.gateway->RemoveDoor(grpc);
  return listening;
}

// A tenant that an operator makes is not the one that the file had.
absl::Status BrokerSockets::Open(const std::string& tenant) {
  GMB_RETURN_IF_ERROR(CheckServing());
  if (!servers_.core->GetPolicy(tenant).ok()) access_.erase(tenant);
  absl::Status opened = MakeDirectory(tenant);
  if (opened.ok()) opened = ListenFor(tenant);
  return opened;
}

absl::Status BrokerSockets::Close(const std::string& tenant) {
  GMB_RETURN_IF_ERROR(CheckServing());
  base::MutexLock lock(&mu_);
  absl::Status closed =
      servers_.handles->RemoveListener(directory_.TenantHandleSocket(tenant));
  closed.Update(
      servers_.gateway->RemoveDoor(directory_.TenantGrpcSocket(tenant)));
  closed.Update(directory_.RemoveTenant(tenant));
  return closed;
}

absl::Status BrokerSockets::CheckServing() const {
  if (servers_.handles != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      "the broker is ending: repeat this when it serves again");
}

TenantDoors BrokerSockets::DoorsOfOperators() {
  return {.open = [this](const std::string& tenant) { return Open(tenant); },
          .close = [this](const std::string& tenant) { return Close(tenant); }};
}

FileDoors BrokerSockets::DoorsOfFile() {
  return {.open =
              [this](const std::string& tenant, const SocketAccess& access) {
                return OpenAs(tenant, access);
              },
          .set_access =
              [this](const std::string& tenant, const SocketAccess& access) {
                return SetAccess(tenant, access);
              },
          .close =
              [this](const std::string& tenant) {
                access_.erase(tenant);
                return Close(tenant);
              }};
}

absl::Status BrokerSockets::OpenAs(const std::string& tenant,
                                   const SocketAccess& access) {
  GMB_RETURN_IF_ERROR(CheckServing());
  access_[tenant] = access;
  if (absl::Status made = MakeDirectory(tenant); !made.ok()) {
    access_.erase(tenant);
    return made;
  }
  ListenOrWarn(tenant);
  return absl::OkStatus();
}

absl::StatusOr<SocketAccess> BrokerSockets::SetAccess(
    const std::string& tenant, const SocketAccess& access) {
  const SocketAccess before = std::exchange(access_[tenant], access);
  if (before == access) return before;
  absl::Status made = MakeDirectory(tenant);
  if (made.ok()) return before;
  access_[tenant] = before;
  return absl::Status(made.code(),
                      absl::StrCat("tenant ", tenant, ": ", made.message()));
}

}  // namespace gmb::broker
