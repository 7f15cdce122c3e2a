// Puts a whole broker together, and takes it apart in order.
#include "broker/daemon/daemon.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "broker/daemon/fd_setup.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/store_setup.h"
#include "broker/daemon/tenant_setup.h"
#include "broker/daemon/threads_or_error.h"
#include "broker/declared/conflict.h"
#include "broker/log/logging.h"
#include "broker/server/health_question.h"
#include "ipc/open_files.h"

namespace gmb::broker {

Daemon::Daemon(BrokerConfig config, Flags flags, SocketDirectory directory)
    : config_(std::move(config)),
      flags_(std::move(flags)),
      sockets_(std::move(directory)) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(BrokerConfig config,
                                                      const Flags& flags) {
  GMB_ASSIGN_OR_RETURN(
      SocketDirectory directory,
      SocketDirectory::Open(config.socket_dir, config.admin_group));
  std::unique_ptr<Daemon> daemon;
  GMB_RETURN_IF_ERROR(ThreadsOrError([&] {
    daemon.reset(new Daemon(std::move(config), flags, std::move(directory)));
    return absl::OkStatus();
  }));
  const std::function<absl::Status()> steps[] = {
      [&] { return daemon->state_.Lock(); },
      [&] { return daemon->OpenKeeping(); },
      [&] {
        return daemon->state_.OpenStore(
            daemon->keeping_ != nullptr &&
            !daemon->keeping_->inheritance()->empty());
      },
      [&] { return daemon->SetUpCore(); },
      [&] { return daemon->StartServers(); }};
  for (const auto& step : steps) {
    const absl::Status done = ThreadsOrError(step);
    if (daemon->keeping_ != nullptr) daemon->keeping_->LetGo();
    if (done.ok()) continue;
    // Taking anything apart now would end what the next broker can adopt.
    if (!daemon->config_.keeper_socket.empty()) (void)daemon.release();
    return done;
  }
  return daemon;
}

absl::Status Daemon::OpenKeeping() {
  GMB_ASSIGN_OR_RETURN(disposer_, ipc::FdDisposer::Start());
  if (config_.keeper_socket.empty()) return absl::OkStatus();
  // The last broker has left up to as many fds as its limit allowed.
  GMB_RETURN_IF_ERROR(ipc::RaiseFdLimit().status());
  GMB_ASSIGN_OR_RETURN(keeping_, Keeping::Open(config_.keeper_socket,
                                               {.disposer = disposer_.get(),
                                                .events = &events_,
                                                .clock = &clock_}));
  return absl::OkStatus();
}

absl::Status Daemon::SetUpCore() {
  const Declared stored = state_.store()->GetDeclared();
  const Declared before = WithoutEnded(stored);
  live_core_ =
      std::make_unique<LiveCore>(LiveCore::Deps{.config = &config_,
                                                .clock = &clock_,
                                                .events = &events_,
                                                .keeping = keeping_.get()});
  GMB_ASSIGN_OR_RETURN(std::vector<PreparedPool> pools,
                       live_core_->PreparePools(before));
  uuids_ = UuidsOf(pools);
  const Declared declared = StartingState(before, config_, uuids_);
  GMB_RETURN_IF_ERROR(CheckConflicts(before, declared));
  GMB_RETURN_IF_ERROR(live_core_->OpenHostPool(&pools));
  GMB_ASSIGN_OR_RETURN(
      const FdPlan plan,
      PlanFds(config_, pools, InForce(declared).tenants.size()));
  if (!plan.warning.empty()) {
    LogEvent(LogLevel::kWarning, "few_files", {{"message", plan.warning}});
  }
  GMB_RETURN_IF_ERROR(live_core_->Start(plan, sockets_.TenantsDirectory()));
  ImportedSlabs imported = ImportedBy(pools);
  GMB_RETURN_IF_ERROR(live_core_->AddPools(std::move(pools)));
  GMB_RETURN_IF_ERROR(AddStartingTenants(before, declared));
  StoreFile(stored, declared, state_.store());
  if (keeping_ != nullptr) {
    takeover_ = std::make_unique<Takeover>(keeping_.get(), live_core_->core());
    takeover_->AdoptSessions(std::move(imported), live_core_->counts());
  }
  return absl::OkStatus();
}

absl::Status Daemon::AddStartingTenants(const Declared& before,
                                        const Declared& declared) {
  const std::vector<StartingTenant> tenants =
      MergeTenants(config_.tenants, before, declared, uuids_);
  std::set<std::string> names;
  for (const StartingTenant& tenant : tenants) {
    names.insert(tenant.config.policy.name);
    sockets_.AddStartingTenant(tenant.config.policy.name, tenant.config.socket);
  }
  const std::string warning =
      DefaultTenantWarning(config_.default_tenant, names);
  if (!warning.empty())
    LogEvent(LogLevel::kWarning, "configuration", {{"message", warning}});
  return AddTenants(tenants, live_core_->core());
}

absl::Status Daemon::StartServers() {
  servers_ =
      std::make_unique<Servers>(Servers::Deps{.flags = &flags_,
                                              .config = &config_,
                                              .uuids = &uuids_,
                                              .disposer = disposer_.get(),
                                              .clock = &clock_,
                                              .events = &events_,
                                              .counts = live_core_->counts(),
                                              .store = state_.store(),
                                              .core = live_core_->core(),
                                              .keeping = keeping_.get(),
                                              .takeover = takeover_.get(),
                                              .sockets = &sockets_});
  return servers_->Start();
}

absl::Status Daemon::LookAlive(absl::Duration patience) {
  (void)live_core_->core()->TenantSessions();
  absl::Status answered = AskHealth(sockets_.AdminGrpcSocket(), patience);
  // Not a hang, and the next broker would have no more fds than this one.
  if (absl::IsResourceExhausted(answered)) return absl::OkStatus();
  return answered;
}

void Daemon::BeginDrain() {
  servers_->BeginDrain();
  live_core_->core()->BeginDrain(drain_deadline());
}

Daemon::~Daemon() {
  if (servers_ != nullptr) servers_->StopReloads();
  // Then: that sessions end now is no tenant's departure.
  if (live_core_ != nullptr && live_core_->core() != nullptr)
    live_core_->core()->RefuseWaiting();
  if (servers_ != nullptr) servers_->Stop();
  if (live_core_ != nullptr) live_core_->Stop();
  if (keeping_ != nullptr) keeping_->Done();
  if (servers_ != nullptr) servers_->EndUsage();
  live_core_.reset();
}

}  // namespace gmb::broker
