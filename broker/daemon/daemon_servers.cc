// The broker's start: its servers, and then its sockets.
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "broker/config/config_file.h"
#include "broker/daemon/daemon.h"
#include "broker/daemon/dropped_values.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/usage_setup.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

AdminService::ReadTenants ReaderOfTenants(
    const std::map<std::string, std::string>& uuids) {
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

absl::Status Daemon::StartServers() {
  GMB_RETURN_IF_ERROR(StartHandleServer());
  GMB_RETURN_IF_ERROR(ListenForGrpc());
  sockets_.LeadTo({.core = core_.get(),
                   .handles = handles_.get(),
                   .gateway = gateway_.get()});
  SetUpOperators();
  GMB_RETURN_IF_ERROR(StartGrpc());
  GMB_RETURN_IF_ERROR(pages_->StartHttp(config_));
  GMB_RETURN_IF_ERROR(sockets_.ListenForTenants());
  GMB_RETURN_IF_ERROR(sockets_.ListenForEverybody());
  if (config_.watch_config && !flags_.config_file.empty())
    watch_.Start(config_, admin_service_.get());
  LogEvent(LogLevel::kInfo, "serving", {{"socket_dir", config_.socket_dir}});
  return absl::OkStatus();
}

absl::Status Daemon::StartHandleServer() {
  reception_ =
      std::make_unique<Reception>(Reception::Deps{.core = core_.get(),
                                                  .keeping = keeping_.get(),
                                                  .events = &events_,
                                                  .counts = event_counts_.get(),
                                                  .clock = &clock_});
  GMB_ASSIGN_OR_RETURN(
      handles_, HandleServer::Start({}, reception_->Calls(), disposer_.get()));
  if (takeover_ != nullptr)
    takeover_->AdoptConnections(reception_->admission(), handles_.get());
  return absl::OkStatus();
}

absl::Status Daemon::ListenForGrpc() {
  GMB_ASSIGN_OR_RETURN(
      grpc_connections_,
      GrpcConnections::Listen(sockets_.AdminGrpcSocket(), BrokerSockets::kMode,
                              disposer_.get()));
  GMB_ASSIGN_OR_RETURN(
      gateway_, Gateway::Create({}, reception_->admission(),
                                grpc_connections_.get(), disposer_.get()));
  calls_ =
      std::make_unique<CallAuthenticator>(core_.get(), grpc_connections_.get());
  return absl::OkStatus();
}

void Daemon::SetUpOperators() {
  pages_ = std::make_unique<StatusPages>(
      StatusPages::Sources{.core = core_.get(),
                           .counts = event_counts_.get(),
                           .store = store_.get(),
                           .keeping = keeping_.get(),
                           .clock = &clock_,
                           .values_not_in_force = [this] {
                             return admin_service_->ValuesNotInForce();
                           }});
  usage_ = RecordUsage(config_.state_dir, event_counts_.get(), &clock_);
  admin_service_ = std::make_unique<AdminService>(
      core_.get(), store_.get(), &events_, &clock_, calls_.get(),
      sockets_.DoorsOfOperators(), FindDropped(stored_, *core_),
      [this] { return pages_->MetricsText(); });
  admin_service_->SetUsage(usage_.get());
  if (keeping_ != nullptr) {
    admin_service_->SetKeeperProblem(
        [keeping = keeping_.get()] { return keeping->problem(); });
  }
  admin_service_->SetTenantsReader(ReaderOfTenants(uuids_));
  reloader_ = std::make_unique<Reloader>(
      flags_, config_, uuids_,
      Reloader::Deps{core_.get(), store_.get(), &events_, &clock_,
                     admin_service_.get(), sockets_.DoorsOfFile(),
                     [this](const BrokerConfig& file) { watch_.Watch(file); }});
}

absl::Status Daemon::StartGrpc() {
  GMB_ASSIGN_OR_RETURN(
      std::unique_ptr<GrpcServer> grpc,
      GrpcServer::Start(
          grpc_connections_.get(), gateway_.get(),
          [this](uint64_t session, std::string_view reason) {
            core_->CloseSession(session, {reason.data(), reason.size()});
          },
          core_.get(), calls_.get(), admin_service_.get()));
  grpc_ = std::move(grpc);
  GMB_ASSIGN_OR_RETURN(streams_,
                       StreamServer::Start(core_.get(), grpc_->pace()));
  reception_->SetStreams(streams_.get());
  return absl::OkStatus();
}

}  // namespace gmb::broker
