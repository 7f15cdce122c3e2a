// The core, put together with what works for it.
#include "broker/daemon/live_core.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/host_pool_setup.h"
#include "broker/log/logging.h"
#include "broker/store/quota_store.h"

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

LiveCore::LiveCore(const Deps& deps) : deps_(deps) {
  if (deps_.keeping != nullptr)
    slab_ids_ = deps_.keeping->inheritance()->next_slab();
}

Keeper* LiveCore::keeper() {
  return deps_.keeping == nullptr ? &keeper_ : deps_.keeping->slabs();
}

absl::StatusOr<std::vector<PreparedPool>> LiveCore::PreparePools(
    const Declared& declared) {
  return broker::PreparePools(
      *deps_.config, InForce(declared).pool_targets, keeper(), &slab_ids_,
      FilePools(declared),
      deps_.keeping == nullptr ? KeptSlabs()
                               : deps_.keeping->inheritance()->SlabsByDevice());
}

absl::Status LiveCore::OpenHostPool(std::vector<PreparedPool>* pools) {
  HostMemory host =
      HostMemoryOf(*deps_.config, *pools, device::ReadAvailableMemory());
  if (deps_.keeping != nullptr) {
    GMB_ASSIGN_OR_RETURN(
        host, deps_.keeping->inheritance()->HostMemoryFor(std::move(host)));
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
      broker::OpenHostPool(*deps_.config, std::move(host));
  if (!opened.ok() && may_do_without) {
    LogEvent(LogLevel::kWarning, "host_pool",
             {{"bytes", uint64_t{0}}, {"message", opened.status().message()}});
    return absl::OkStatus();
  }
  GMB_ASSIGN_OR_RETURN(host_pool_, std::move(opened));
  return AddCopiers(host_pool_.get(), pools);
}

absl::Status LiveCore::Start(const FdPlan& plan,
                             const std::string& tenants_dir) {
  GMB_RETURN_IF_ERROR(KeepAll(plan));
  MachineOptions options = OptionsOf(*deps_.config, plan);
  options.recorded = options.takes_over = deps_.keeping != nullptr;
  options.tenants_dir = tenants_dir;
  event_log_ = std::make_unique<EventLog>(deps_.events);
  event_counts_ =
      std::make_unique<metrics::EventCounts>(deps_.events, deps_.clock);
  core_ = std::make_unique<Core>(
      options, Core::Deps{deps_.clock, keeper(), deps_.events, host_pool_.get(),
                          deps_.keeping == nullptr ? nullptr
                                                   : deps_.keeping->journal()});
  core_->SetWakeTicker([this] {
    if (ticker_ != nullptr) ticker_->Wake();
  });
  ticker_ = std::make_unique<Ticker>([this] { return core_->Tick(); });
  return absl::OkStatus();
}

absl::Status LiveCore::KeepAll(const FdPlan& plan) {
  if (deps_.keeping == nullptr) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(
      deps_.keeping->BeginJournal(plan.max_handles, plan.max_sessions));
  return deps_.keeping->KeepHostMemory(
      host_pool_ == nullptr ? -1 : host_pool_->fd());
}

absl::Status LiveCore::AddPools(std::vector<PreparedPool> pools) {
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

void LiveCore::Stop() {
  if (ticker_ != nullptr) ticker_->Stop();
  // Joins the workers, which may still wake the ticker, and the copiers, which
  // use the host pool.
  core_.reset();
}

}  // namespace gmb::broker
