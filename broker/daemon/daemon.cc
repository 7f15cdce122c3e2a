// Puts a whole broker together, and takes it apart in order.
#include "broker/daemon/daemon.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/daemon/fd_setup.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/host_pool_setup.h"
#include "broker/daemon/store_setup.h"
#include "broker/daemon/tenant_setup.h"
#include "broker/daemon/threads_or_error.h"
#include "broker/declared/conflict.h"
#include "broker/log/logging.h"
#include "broker/make_directories.h"
#include "broker/server/health_question.h"
#include "ipc/open_files.h"

namespace gmb::broker {
namespace {

MachineOptions OptionsOf(const BrokerConfig& config, const FdPlan& plan) {
  MachineOptions options;
  options.max_handles = plan.max_handles;
  options.max_sessions = static_cast<uint32_t>(plan.max_sessions);
  options.few_files = plan.warning;
  options.default_tenant = config.default_tenant;
  options.planner.pause = config.pause;
  options.planner.unmap_grace =
      quota::Nanoseconds(absl::ToInt64Nanoseconds(config.unmap_grace));
  options.planner.kill_grace =
      quota::Nanoseconds(absl::ToInt64Nanoseconds(config.kill_grace));
  options.backing.bytes_per_second = config.back_ahead_bytes_per_second;
  options.backing.sealed_bytes_per_second = config.back_sealed_bytes_per_second;
  options.planner.lend_parked_guarantees = config.lend_parked_guarantees;
  return options;
}

}  // namespace

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
  for (auto step :
       {&Daemon::LockState, &Daemon::OpenKeeping, &Daemon::OpenStore,
        &Daemon::SetUpCore, &Daemon::StartServers}) {
    const absl::Status done =
        ThreadsOrError([&] { return (daemon.get()->*step)(); });
    if (daemon->keeping_ != nullptr) daemon->keeping_->LetGo();
    if (done.ok()) continue;
    // Taking anything apart now would end what the next broker can adopt.
    if (!daemon->config_.keeper_socket.empty()) (void)daemon.release();
    return done;
  }
  return daemon;
}

absl::Status Daemon::LockState() {
  GMB_RETURN_IF_ERROR(MakeDirectories(config_.state_dir, 0700));
  absl::StatusOr<InstanceLock> lock = InstanceLock::Acquire(config_.state_dir);
  // The two directories may be one: then the lock is held already.
  if (lock.ok()) {
    state_lock_ = *std::move(lock);
  } else if (config_.state_dir != config_.socket_dir) {
    return lock.status();
  }
  return absl::OkStatus();
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
  slab_ids_ = keeping_->inheritance()->next_slab();
  return absl::OkStatus();
}

absl::Status Daemon::OpenStore() {
  if (keeping_ != nullptr && !keeping_->inheritance()->empty() &&
      !config_.fresh_state)
    GMB_RETURN_IF_ERROR(CheckStoreIsThere(config_.state_dir));
  GMB_ASSIGN_OR_RETURN(store_,
                       OpenQuotaStore(config_.state_dir, config_.fresh_state));
  return absl::OkStatus();
}

absl::Status Daemon::SetUpCore() {
  const Declared before = store_->GetDeclared();
  GMB_ASSIGN_OR_RETURN(
      std::vector<PreparedPool> pools,
      PreparePools(config_, InForce(before).pool_targets, keeper(), &slab_ids_,
                   FilePools(before),
                   keeping_ == nullptr
                       ? KeptSlabs()
                       : keeping_->inheritance()->SlabsByDevice()));
  uuids_ = UuidsOf(pools);
  const Declared declared = StartingState(before, config_, uuids_);
  GMB_RETURN_IF_ERROR(CheckConflicts(declared));
  stored_ = InForce(declared);
  GMB_RETURN_IF_ERROR(SetUpHostPool(&pools));
  GMB_ASSIGN_OR_RETURN(const FdPlan plan,
                       PlanFds(config_, pools, stored_.tenants.size()));
  if (!plan.warning.empty()) {
    LogEvent(LogLevel::kWarning, "few_files", {{"message", plan.warning}});
  }
  GMB_RETURN_IF_ERROR(Keep(plan));
  MakeCore(plan);
  ImportedSlabs imported = ImportedBy(pools);
  GMB_RETURN_IF_ERROR(AddPools(std::move(pools)));
  GMB_RETURN_IF_ERROR(AddStartingTenants(declared));
  StoreFile(before, declared, store_.get());
  if (keeping_ != nullptr) {
    takeover_ = std::make_unique<Takeover>(keeping_.get(), core_.get());
    takeover_->AdoptSessions(std::move(imported), event_counts_.get());
  }
  return absl::OkStatus();
}

absl::Status Daemon::SetUpHostPool(std::vector<PreparedPool>* pools) {
  HostMemory host =
      HostMemoryOf(config_, *pools, device::ReadAvailableMemory());
  if (keeping_ != nullptr) {
    GMB_ASSIGN_OR_RETURN(
        host, keeping_->inheritance()->HostMemoryFor(std::move(host)));
  }
  LogEvent(LogLevel::kInfo, "host_pool",
           {{"bytes", host.bytes},
            {"message",
             host.by_default
                 ? absl::StrCat(host.note,
                                "; taken as it is needed; host_pool sets a "
                                "size, 0 none")
                 : "as configured"}});
  // A kept one may have contents: better no start than without them.
  const bool may_do_without = host.by_default && !host.kept.valid();
  absl::StatusOr<std::unique_ptr<device::HostPool>> opened =
      OpenHostPool(config_, std::move(host));
  if (!opened.ok() && may_do_without) {
    LogEvent(LogLevel::kWarning, "host_pool",
             {{"bytes", uint64_t{0}}, {"message", opened.status().message()}});
    return absl::OkStatus();
  }
  GMB_ASSIGN_OR_RETURN(host_pool_, std::move(opened));
  return AddCopiers(host_pool_.get(), pools);
}

absl::Status Daemon::Keep(const FdPlan& plan) {
  if (keeping_ == nullptr) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(
      keeping_->BeginJournal(plan.max_handles, plan.max_sessions));
  return keeping_->KeepHostMemory(host_pool_ == nullptr ? -1
                                                        : host_pool_->fd());
}

void Daemon::MakeCore(const FdPlan& plan) {
  MachineOptions options = OptionsOf(config_, plan);
  options.recorded = options.takes_over = keeping_ != nullptr;
  options.tenants_dir = sockets_.TenantsDirectory();
  event_log_ = std::make_unique<EventLog>(&events_);
  event_counts_ = std::make_unique<metrics::EventCounts>(&events_, &clock_);
  core_ = std::make_unique<Core>(
      options, Core::Deps{&clock_, keeper(), &events_, host_pool_.get(),
                          keeping_ == nullptr ? nullptr : keeping_->journal()});
  core_->SetWakeTicker([this] {
    if (ticker_ != nullptr) ticker_->Wake();
  });
  ticker_ = std::make_unique<Ticker>([this] { return core_->Tick(); });
}

absl::Status Daemon::AddPools(std::vector<PreparedPool> pools) {
  for (PreparedPool& pool : pools) {
    const device::DeviceInfo& info = pool.options.worker->info();
    LogEvent(LogLevel::kInfo, "pool",
             {{"device", info.uuid},
              {"name", info.name},
              {"bytes", pool.options.target_bytes}});
    GMB_RETURN_IF_ERROR(core_->AddPool(std::move(pool.options)));
  }
  return absl::OkStatus();
}

absl::Status Daemon::AddStartingTenants(const Declared& declared) {
  const std::vector<StartingTenant> tenants =
      MergeTenants(config_.tenants, declared, uuids_);
  std::set<std::string> names;
  for (const StartingTenant& tenant : tenants) {
    names.insert(tenant.config.policy.name);
    sockets_.AddStartingTenant(tenant.config.policy.name, tenant.config.socket);
  }
  const std::string warning =
      DefaultTenantWarning(config_.default_tenant, names);
  if (!warning.empty())
    LogEvent(LogLevel::kWarning, "configuration", {{"message", warning}});
  return AddTenants(tenants, core_.get());
}

absl::Status Daemon::StartServers() {
  servers_ =
      std::make_unique<Servers>(Servers::Deps{.flags = &flags_,
                                              .config = &config_,
                                              .uuids = &uuids_,
                                              .stored = &stored_,
                                              .disposer = disposer_.get(),
                                              .clock = &clock_,
                                              .events = &events_,
                                              .counts = event_counts_.get(),
                                              .store = store_.get(),
                                              .core = core_.get(),
                                              .keeping = keeping_.get(),
                                              .takeover = takeover_.get(),
                                              .sockets = &sockets_});
  return servers_->Start();
}

void Daemon::RecordDrain(const std::string& sender) {
  LogEvent(LogLevel::kInfo, "drain",
           {{"message", absl::StrCat("asked for by ", sender)}});
  AuditRecord record = RecordOfBroker("drain", "");
  record.operator_name = sender;
  store_->Audit(record, [] { return absl::OkStatus(); }).IgnoreError();
}

absl::Status Daemon::LookAlive(absl::Duration patience) {
  (void)core_->TenantSessions();
  absl::Status answered = AskHealth(sockets_.AdminGrpcSocket(), patience);
  // Not a hang, and the next broker would have no more fds than this one.
  if (absl::IsResourceExhausted(answered)) return absl::OkStatus();
  return answered;
}

void Daemon::BeginDrain() {
  servers_->BeginDrain();
  core_->BeginDrain(drain_deadline());
}

Daemon::~Daemon() {
  if (servers_ != nullptr) servers_->StopReloads();
  // Then: that sessions end now is no tenant's departure.
  if (core_ != nullptr) core_->RefuseWaiting();
  if (servers_ != nullptr) servers_->Stop();
  if (ticker_ != nullptr) ticker_->Stop();
  // Joins the workers, which may still wake the ticker, and the copiers, which
  // use the host pool.
  core_.reset();
  if (keeping_ != nullptr) keeping_->Done();
  if (servers_ != nullptr) servers_->EndUsage();
  event_counts_.reset();
  event_log_.reset();
}

}  // namespace gmb::broker
