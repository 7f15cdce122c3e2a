// The broker's servers: they start, and then the sockets lead to them.
#include "broker/daemon/servers.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/status_macros.h"
#include "broker/config/config_file.h"
#include "broker/daemon/dropped_values.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/usage_setup.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

ReadTenants ReaderOfTenants(const std::map<std::string, std::string>& uuids) {
  return [uuids](const std::string& yaml, const std::string& name)
             -> absl::StatusOr<std::vector<TenantPolicy>> {
    BrokerConfig config;
    GMB_RETURN_IF_ERROR(ParseTenants(yaml, name, &config));
    std::vector<TenantPolicy> policies;
    for (const TenantConfig& tenant : config.tenants)
      policies.push_back(WithUuids(tenant.policy, uuids));
    return policies;
  };
}

}  // namespace

absl::Status Servers::Start() {
  GMB_RETURN_IF_ERROR(StartHandleServer());
  GMB_RETURN_IF_ERROR(ListenForGrpc());
  deps_.sockets->LeadTo({.core = deps_.core,
                         .handles = handles_.get(),
                         .gateway = gateway_.get()});
  SetUpOperators();
  GMB_RETURN_IF_ERROR(StartGrpc());
  GMB_RETURN_IF_ERROR(pages_->StartHttp(*deps_.config));
  GMB_RETURN_IF_ERROR(deps_.sockets->ListenForTenants());
  GMB_RETURN_IF_ERROR(deps_.sockets->ListenForEverybody());
  if (deps_.config->watch_config && !deps_.flags->config_file.empty())
    watch_.Start(*deps_.config, admin_service_.get());
  LogEvent(LogLevel::kInfo, "serving",
           {{"socket_dir", deps_.config->socket_dir}});
  return absl::OkStatus();
}

absl::Status Servers::StartHandleServer() {
  reception_ =
      std::make_unique<Reception>(Reception::Deps{.core = deps_.core,
                                                  .keeping = deps_.keeping,
                                                  .events = deps_.events,
                                                  .counts = deps_.counts,
                                                  .clock = deps_.clock});
  GMB_ASSIGN_OR_RETURN(
      handles_, HandleServer::Start({}, reception_->Calls(), deps_.disposer));
  if (deps_.takeover != nullptr)
    deps_.takeover->AdoptConnections(reception_->admission(), handles_.get());
  return absl::OkStatus();
}

absl::Status Servers::ListenForGrpc() {
  GMB_ASSIGN_OR_RETURN(
      grpc_connections_,
      GrpcConnections::Listen(deps_.sockets->AdminGrpcSocket(),
                              BrokerSockets::kMode, deps_.disposer));
  GMB_ASSIGN_OR_RETURN(
      gateway_, Gateway::Create({}, reception_->admission(),
                                grpc_connections_.get(), deps_.disposer));
  calls_ =
      std::make_unique<CallAuthenticator>(deps_.core, grpc_connections_.get());
  return absl::OkStatus();
}

void Servers::SetUpOperators() {
  pages_ = std::make_unique<StatusPages>(
      StatusPages::Sources{.core = deps_.core,
                           .counts = deps_.counts,
                           .store = deps_.store,
                           .keeping = deps_.keeping,
                           .clock = deps_.clock,
                           .values_not_in_force = [this] {
                             return admin_service_->ValuesNotInForce();
                           }});
  usage_ = RecordUsage(deps_.config->state_dir, deps_.counts, deps_.clock);
  std::function<std::string()> keeper_problem;
  if (deps_.keeping != nullptr)
    keeper_problem = [keeping = deps_.keeping] { return keeping->problem(); };
  admin_service_ = std::make_unique<AdminService>(
      deps_.core, deps_.store, deps_.events, deps_.clock, calls_.get(),
      AdminServiceOptions{
          .doors = deps_.sockets->DoorsOfOperators(),
          .dropped = FindDropped(*deps_.store->Shown(), *deps_.core),
          .sources = {.metrics = [this] { return pages_->MetricsText(); },
                      .keeper_problem = std::move(keeper_problem),
                      .usage = usage_.get()},
          .read_tenants = ReaderOfTenants(*deps_.uuids)});
  reloader_ = std::make_unique<Reloader>(
      *deps_.flags, *deps_.config, *deps_.uuids,
      Reloader::Deps{deps_.core, deps_.store, deps_.events, deps_.clock,
                     admin_service_.get(), deps_.sockets->DoorsOfFile(),
                     [this](const BrokerConfig& file) { watch_.Watch(file); }});
}

absl::Status Servers::StartGrpc() {
  GMB_ASSIGN_OR_RETURN(
      std::unique_ptr<GrpcServer> grpc,
      GrpcServer::Start(
          grpc_connections_.get(), gateway_.get(),
          [this](uint64_t session, std::string_view reason) {
            deps_.core->CloseSession(session, {reason.data(), reason.size()});
          },
          deps_.core, calls_.get(), admin_service_.get()));
  grpc_ = std::move(grpc);
  GMB_ASSIGN_OR_RETURN(streams_,
                       StreamServer::Start(deps_.core, grpc_->pace()));
  reception_->SetStreams(streams_.get());
  return absl::OkStatus();
}

void Servers::BeginDrain() {
  pages_->BeginDrain();
  if (grpc_ != nullptr) grpc_->SetServing(false);
}

void Servers::StopReloads() {
  if (reloader_ != nullptr) reloader_->Stop();
  watch_.Stop();
}

// An operator may be making or ending a tenant.
void Servers::CloseDoors() {
  if (admin_service_ == nullptr) return;
  absl::Notification closed;
  admin_service_->Post([&] {
    deps_.sockets->LeadNowhere();
    closed.Notify();
  });
  closed.WaitForNotification();
}

void Servers::Stop() {
  if (pages_ != nullptr) pages_->StopHttp();
  CloseDoors();
  handles_.reset();  // ends every session; their streams finish
  streams_.reset();
  if (grpc_ != nullptr) grpc_->Shutdown(absl::Seconds(1));
  grpc_.reset();
  admin_service_.reset();
  // These remove their sockets.
  gateway_.reset();
  grpc_connections_.reset();
}

}  // namespace gmb::broker
