// Puts a whole broker together, and takes it apart in order.
#include "broker/daemon/daemon.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/config/config_file.h"
#include "broker/daemon/dropped_values.h"
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

namespace gmb::broker {
namespace {

std::set<std::string> WatchedFiles(const Flags& flags,
                                   const BrokerConfig& config) {
  std::set<std::string> files = {flags.config_file};
  for (const TenantConfig& tenant : config.tenants) {
    if (!tenant.token_file.empty()) files.insert(tenant.token_file);
  }
  return files;
}

void WarnOfWatch(const absl::Status& watched) {
  if (watched.ok()) return;
  LogEvent(LogLevel::kWarning, "file_not_watched",
           {{"message",
             absl::StrCat(watched.message(), ": SIGHUP has it read again")}});
}

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
  options.planner.lend_parked_guarantees = config.lend_parked_guarantees;
  return options;
}

}  // namespace

Daemon::Daemon(BrokerConfig config, Flags flags, SocketDirectory sockets)
    : config_(std::move(config)),
      flags_(std::move(flags)),
      sockets_(std::move(sockets)) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(BrokerConfig config,
                                                      const Flags& flags) {
  GMB_ASSIGN_OR_RETURN(
      SocketDirectory sockets,
      SocketDirectory::Open(config.socket_dir, config.admin_group));
  std::unique_ptr<Daemon> daemon;
  GMB_RETURN_IF_ERROR(ThreadsOrError([&] {
    daemon.reset(new Daemon(std::move(config), flags, std::move(sockets)));
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
  const ImportedSlabs imported = ImportedBy(pools);
  for (PreparedPool& pool : pools) {
    const device::DeviceInfo& info = pool.options.worker->info();
    LogEvent(LogLevel::kInfo, "pool",
             {{"device", info.uuid},
              {"name", info.name},
              {"bytes", pool.options.target_bytes}});
    GMB_RETURN_IF_ERROR(core_->AddPool(std::move(pool.options)));
  }
  GMB_RETURN_IF_ERROR(AddStartingTenants(declared));
  StoreFile(before, declared, store_.get());
  Adopt(imported);
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

void Daemon::MakeCore(const FdPlan& plan) {
  MachineOptions options = OptionsOf(config_, plan);
  options.recorded = options.takes_over = keeping_ != nullptr;
  {
    base::MutexLock lock(&sockets_mu_);
    options.tenants_dir = sockets_.TenantsDirectory();
  }
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

absl::Status Daemon::AddStartingTenants(const Declared& declared) {
  const std::vector<StartingTenant> tenants =
      MergeTenants(config_.tenants, declared, uuids_);
  std::set<std::string> names;
  for (const StartingTenant& tenant : tenants) {
    names.insert(tenant.config.policy.name);
    access_[tenant.config.policy.name] = tenant.config.socket;
  }
  const std::string warning =
      DefaultTenantWarning(config_.default_tenant, names);
  if (!warning.empty())
    LogEvent(LogLevel::kWarning, "configuration", {{"message", warning}});
  return AddTenants(tenants, core_.get());
}

absl::Status Daemon::StartHandleServer() {
  const auto open =
      [this](const PeerIdentity& peer) -> absl::StatusOr<OpenedSession> {
    absl::StatusOr<OpenedSession> opened = core_->OpenSession(peer);
    if (!opened.ok()) {
      refusals_.Add(peer, opened.status(), clock_.WallTime());
      event_counts_->AddRefusedSession(ReasonName(opened.status()));
    }
    if (opened.ok() && peer.origin != Origin::kAdmin) {
      // Before the Welcome: the client connects to gRPC on it.
      admission_.Add(opened->id, {peer.origin, peer.tenant_directory},
                     ProcessOf(peer.pidfd.get(), peer.pid), opened->tenant);
    }
    return opened;
  };
  const auto close = [this](uint64_t session, std::string_view reason) {
    admission_.Remove(session);
    core_->CloseSession(session, {reason.data(), reason.size()});
    if (keeping_ != nullptr) keeping_->EndSession(session);
  };
  SessionCalls calls{.open = open, .close = close};
  calls.has_leases = [this](uint64_t session) {
    const auto report = core_->SessionReport(session);
    return report.ok() && report->leases() > 0;
  };
  calls.open_stream = [this](const StreamPeer& peer,
                             StreamConnection connection) {
    return OpenStream(peer, std::move(connection));
  };
  if (keeping_ != nullptr) {
    calls.keep = [this](uint64_t session, int socket, const SharedFd& pidfd,
                        int gate_page) {
      keeping_->KeepSession(session, socket, pidfd, gate_page);
    };
    calls.welcomed = [this](uint64_t session) { core_->OnWelcomed(session); };
  }
  GMB_ASSIGN_OR_RETURN(
      handles_, HandleServer::Start({}, std::move(calls), disposer_.get()));
  AdoptConnections();
  return absl::OkStatus();
}

absl::Status Daemon::StartServers() {
  GMB_RETURN_IF_ERROR(StartHandleServer());
  std::string admin;
  {
    base::MutexLock lock(&sockets_mu_);
    admin = sockets_.AdminGrpcSocket();
  }
  GMB_ASSIGN_OR_RETURN(
      grpc_connections_,
      GrpcConnections::Listen(admin, kSocketMode, disposer_.get()));
  GMB_ASSIGN_OR_RETURN(gateway_,
                       Gateway::Create({}, &admission_, grpc_connections_.get(),
                                       disposer_.get()));
  calls_ =
      std::make_unique<CallAuthenticator>(core_.get(), grpc_connections_.get());
  SetUpMetrics();
  RecordUsage();
  admin_service_ = std::make_unique<AdminService>(
      core_.get(), store_.get(), &events_, &clock_, calls_.get(),
      TenantDoors{
          .open =
              [this](const std::string& tenant) { return OpenDoor(tenant); },
          .close =
              [this](const std::string& tenant) { return CloseDoor(tenant); }},
      FindDropped(stored_, *core_), [this] { return collector_->Text(); });
  admin_service_->SetUsage(usage_.get());
  if (keeping_ != nullptr) {
    admin_service_->SetKeeperProblem(
        [keeping = keeping_.get()] { return keeping->problem(); });
  }
  admin_service_->SetTenantsReader(
      [uuids = uuids_](const std::string& yaml, const std::string& name)
          -> absl::StatusOr<std::vector<TenantPolicy>> {
        BrokerConfig config;
        GMB_RETURN_IF_ERROR(ParseTenants(yaml, name, &config));
        std::vector<TenantPolicy> policies;
        for (const TenantConfig& tenant : config.tenants)
          policies.push_back(WithUuids(tenant.policy, uuids));
        return policies;
      });
  reloader_ = std::make_unique<Reloader>(
      flags_, config_, uuids_,
      Reloader::Deps{core_.get(), store_.get(), &events_, &clock_,
                     admin_service_.get(), DoorsOfFile(),
                     [this](const BrokerConfig& file) {
                       if (watch_ != nullptr) WatchTokensOf(file);
                     }});
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
  absl::Status listening = StartHttp();
  if (listening.ok()) listening = ListenForTenantsAtStart();
  if (listening.ok()) listening = ListenForEverybody();
  if (!listening.ok()) return listening;
  if (config_.watch_config && !flags_.config_file.empty()) WatchFile();
  LogEvent(LogLevel::kInfo, "serving", {{"socket_dir", config_.socket_dir}});
  return absl::OkStatus();
}

absl::Status Daemon::ListenForEverybody() {
  std::string grpc;
  std::string shared;
  std::string admin;
  {
    base::MutexLock lock(&sockets_mu_);
    grpc = sockets_.GrpcSocket();
    shared = sockets_.HandleSocket();
    admin = sockets_.AdminHandleSocket();
  }
  absl::Status listening =
      gateway_->AddDoor(grpc, kSocketMode, {.origin = Origin::kShared});
  listening.Update(handles_->AddListener(shared, kSocketMode, Origin::kShared));
  // The last: a broker that answers its operators has room for everybody.
  listening.Update(handles_->AddListener(admin, kSocketMode, Origin::kAdmin));
  return listening;
}

void Daemon::WatchFile() {
  absl::StatusOr<std::unique_ptr<FileWatch>> watch =
      FileWatch::Start(WatchedFiles(flags_, config_), [this] { Reload(); });
  WarnOfWatch(watch.status());
  if (!watch.ok()) return;
  admin_service_->Post([this, w = std::shared_ptr(*std::move(watch))] {
    watch_ = w;
    Reload();  // what was written since the start read it
  });
}

void Daemon::WatchTokensOf(const BrokerConfig& file) {
  const absl::StatusOr<bool> any_new =
      watch_->Watch(WatchedFiles(flags_, file));
  WarnOfWatch(any_new.status());
  if (any_new.ok() && *any_new) Reload();  // as at the start
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
  std::string admin;
  {
    base::MutexLock lock(&sockets_mu_);
    admin = sockets_.AdminGrpcSocket();
  }
  absl::Status answered = AskHealth(admin, patience);
  // Not a hang, and the next broker would have no more fds than this one.
  if (absl::IsResourceExhausted(answered)) return absl::OkStatus();
  return answered;
}

void Daemon::BeginDrain() {
  draining_ = true;
  if (grpc_ != nullptr) grpc_->SetServing(false);
  core_->BeginDrain(drain_deadline());
}

Daemon::~Daemon() {
  // First: no file is read any more.
  if (reloader_ != nullptr) reloader_->Stop();
  watch_.reset();
  // Then: that sessions end now is no tenant's departure.
  if (core_ != nullptr) core_->RefuseWaiting();
  http_.reset();
  handles_.reset();  // ends every session; their streams finish
  streams_.reset();
  if (grpc_ != nullptr) grpc_->Shutdown(absl::Seconds(1));
  grpc_.reset();
  admin_service_.reset();
  // These remove their sockets. Tenants' directories stay: pods have them
  // mounted and see the sockets of the next broker there.
  gateway_.reset();
  grpc_connections_.reset();
  if (ticker_ != nullptr) ticker_->Stop();
  // Joins the workers, which may still wake the ticker, and the copiers, which
  // use the host pool.
  core_.reset();
  if (keeping_ != nullptr) keeping_->Done();
  usage_.reset();  // writes what is left
  event_counts_.reset();
  event_log_.reset();
}

}  // namespace gmb::broker
