// `gmbd --check`: what would be served, without serving it.
#include "broker/daemon/check.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/in_process_keeper.h"
#include "broker/daemon/check_directories.h"
#include "broker/daemon/check_keeper.h"
#include "broker/daemon/fd_setup.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/host_pool_setup.h"
#include "broker/daemon/pool_setup.h"
#include "broker/daemon/store_setup.h"
#include "broker/daemon/tenant_setup.h"
#include "broker/declared/conflict.h"
#include "broker/http/listen.h"
#include "device/devices.h"
#include "device/hostpool/pool_mapping.h"
#include "proto/amount_text.h"
#include "quota/tenant_quota.h"

namespace gmb::broker {
namespace {

void PrintProblem(const absl::Status& status) {
  std::printf("problem: %s\n", std::string(status.message()).c_str());
}

void PrintWarning(const absl::Status& status) {
  std::printf("warning: %s\n", std::string(status.message()).c_str());
}

// A machine that is to serve host memory alone lacks nothing without a driver.
void PrintCuda(bool gpu_configured) {
  const device::CudaProbe probe = device::ProbeCuda();
  const bool usable = probe.problem.empty();
  if (!usable && !gpu_configured) {
    std::puts("cuda: not needed, as no GPU is configured");
  } else if (!usable) {
    std::printf("cuda: %s\n", probe.problem.c_str());
  } else {
    std::printf("cuda: driver %s\n", probe.driver_version.c_str());
  }
  for (const device::DeviceInfo& gpu : probe.gpus) {
    std::printf("  %s  %s  %s\n", gpu.uuid.c_str(), gpu.name.c_str(),
                proto::FormatBytes(gpu.total_bytes).c_str());
  }
}

// One pool's quotas, of the tenants that fit into it so far.
using Fitting = std::vector<quota::TenantQuota>;

quota::TenantQuota QuotaIn(const TenantPolicy& policy,
                           const PreparedPool& pool) {
  const bool by_name = policy.device_quotas.contains(pool.name);
  return policy.QuotaOn(by_name ? pool.name : pool.options.worker->info().uuid);
}

void PrintUnfit(const StartingTenant& tenant, const PreparedPool& pool,
                const quota::Refusal& refusal) {
  const std::string& uuid = pool.options.worker->info().uuid;
  if (refusal.reason == quota::Reason::kOvercommitted) {
    std::printf(
        "problem: %s: the guarantees are above the pool by %s: lower them\n",
        uuid.c_str(), proto::FormatBytes(refusal.deficit_bytes).c_str());
  } else {
    std::printf(
        "problem: %s: tenant %s: the guarantee is above the limit%s%s\n",
        uuid.c_str(), tenant.config.policy.name.c_str(),
        tenant.sources.empty() ? "" : ": ", tenant.sources.c_str());
  }
}

using Refusals = std::map<size_t, quota::Refusal>;  // by the pool's index

bool MayGoWithout(const StartingTenant& tenant, const Refusals& refusals) {
  return std::all_of(refusals.begin(), refusals.end(), [&](const auto& one) {
    return tenant.MayGoWithout(one.second.reason == quota::Reason::kBadRequest);
  });
}

// As the broker itself would find at its start: of tenants that operators have
// changed it drops guarantees that do not fit, on all devices, and says so.
bool GuaranteesFit(const std::vector<StartingTenant>& tenants,
                   const std::vector<PreparedPool>& pools) {
  bool all_fit = true;
  std::vector<Fitting> fitting(pools.size());
  for (const StartingTenant& tenant : tenants) {
    const TenantPolicy& policy = tenant.config.policy;
    Refusals refusals;
    for (size_t i = 0; i < pools.size(); ++i) {
      fitting[i].push_back(QuotaIn(policy, pools[i]));
      const auto refused =
          quota::CheckQuotas(fitting[i], pools[i].options.target_bytes,
                             pools[i].options.worker->info().granularity_bytes);
      if (refused.has_value()) refusals[i] = refused->refusal;
    }
    if (refusals.empty()) continue;
    if (MayGoWithout(tenant, refusals)) {
      for (Fitting& in_pool : fitting)
        in_pool.back().guarantee = quota::Amount::Bytes(0);
      std::printf(
          "warning: tenant %s would start without its guarantee, which does "
          "not fit any more: set it anew with `gmb tenant set`\n",
          policy.name.c_str());
      continue;
    }
    all_fit = false;
    for (const auto& [pool, refusal] : refusals) {
      fitting[pool].pop_back();
      PrintUnfit(tenant, pools[pool], refusal);
    }
  }
  return all_fit;
}

// Whether the memory is there; it is asked for as at a start, but not used.
bool HostPoolFits(const HostMemory& memory) {
  if (memory.bytes == 0) {
    std::printf(
        "host pool: none: leases whose contents are to be kept stay on the "
        "device%s%s\n",
        memory.note.empty() ? "" : ": ", memory.note.c_str());
    return true;
  }
  const absl::StatusOr<device::PoolMapping> mapping =
      device::PoolMapping::Create(
          memory.bytes, memory.by_default ? device::PageSource::kOrdinary
                                          : device::PageSource::kAny);
  if (!mapping.ok() && memory.by_default) {
    std::printf("warning: no host pool: %s\n",
                std::string(mapping.status().message()).c_str());
    return true;
  }
  if (!mapping.ok()) {
    PrintProblem(mapping.status());
    return false;
  }
  std::printf("host pool: %s, %s%s%s\n",
              proto::FormatBytes(memory.bytes).c_str(),
              device::PageKindName(mapping->page_kind()),
              memory.by_default ? ", taken as it is needed, by default: " : "",
              memory.note.c_str());
  return true;
}

void PrintPools(const std::vector<PreparedPool>& pools) {
  for (const PreparedPool& pool : pools) {
    const device::DeviceInfo& info = pool.options.worker->info();
    const uint64_t free_bytes = pool.options.worker->baseline_bytes();
    std::printf(
        "pool: %s  %s  %s of %s free, ready slabs of %s, headroom %s\n",
        info.uuid.c_str(), info.name.c_str(),
        proto::FormatBytes(pool.options.target_bytes).c_str(),
        proto::FormatBytes(free_bytes).c_str(),
        proto::FormatBytes(pool.options.slabs.ready_slab_bytes).c_str(),
        proto::FormatBytes(free_bytes - pool.options.target_bytes).c_str());
  }
}

// Few are served all the same, which a warning says.
bool FilesCanBeOpened(const BrokerConfig& config,
                      const std::vector<PreparedPool>& pools, size_t tenants) {
  const absl::StatusOr<FdPlan> plan = PlanFds(config, pools, tenants);
  if (!plan.ok()) {
    PrintProblem(plan.status());
    return false;
  }
  if (!plan->warning.empty())
    std::printf("warning: %s\n", plan->warning.c_str());
  return true;
}

void PrintTenants(const BrokerConfig& config,
                  const std::vector<StartingTenant>& tenants) {
  size_t changed = 0;
  std::set<std::string> names;
  for (const StartingTenant& tenant : tenants) {
    names.insert(tenant.config.policy.name);
    if (tenant.is_changed) ++changed;
  }
  std::printf("tenants: %zu, %zu of them as operators set them\n",
              tenants.size(), changed);
  const std::string warning =
      DefaultTenantWarning(config.default_tenant, names);
  if (!warning.empty()) std::printf("warning: %s\n", warning.c_str());
}

bool DirectoriesCanBeUsed(const BrokerConfig& config) {
  bool ok = true;
  for (const std::string& path :
       std::set<std::string>{config.socket_dir, config.state_dir}) {
    const absl::Status usable = CheckDirectory(path);
    if (usable.ok()) continue;
    // Beside a database a broker starts on a full disk, and changes nothing.
    if (absl::IsResourceExhausted(usable) &&
        std::filesystem::exists(path + "/gmb.db")) {
      PrintWarning(usable);
      continue;
    }
    ok = false;
    PrintProblem(usable);
  }
  return ok;
}

// A Unix socket's directory may be one that the start makes.
bool HttpCanBeServed(const BrokerConfig& config) {
  if (!config.http.has_value()) return true;
  if (config.http->unix_path.empty()) {
    const absl::StatusOr<HttpListener> listener = ListenForHttp(*config.http);
    if (!listener.ok()) {
      PrintProblem(listener.status());
      return false;
    }
  }
  std::printf("http: %s, %s\n", config.http->Text().c_str(),
              config.http_token.empty() ? "without a token" : "with a token");
  return true;
}

// Reads the changes of operators. False: a start would end here.
bool TakeStored(const BrokerConfig& config, Declared* stored) {
  absl::StatusOr<Declared> read = ReadStored(config.state_dir);
  if (read.ok()) {
    *stored = *std::move(read);
    return true;
  }
  if (absl::IsUnavailable(read.status())) {
    PrintWarning(read.status());
    return true;
  }
  if (absl::IsDataLoss(read.status()) && config.fresh_state) {
    std::puts("warning: the state database is damaged, and would be set aside");
    return true;
  }
  PrintProblem(read.status());
  return false;
}

}  // namespace

bool Check(const BrokerConfig& config) {
  for (const std::string& warning : config.warnings)
    std::printf("warning: %s\n", warning.c_str());
  PrintCuda(std::any_of(config.devices.begin(), config.devices.end(),
                        [](const DeviceConfig& device) {
                          return device.kind != device::DeviceKind::kHost;
                        }));
  // Each says what it finds.
  bool ok = DirectoriesCanBeUsed(config);
  Declared stored;
  // A database that another broker may be writing says nothing.
  if (ok) ok = TakeStored(config, &stored);
  InProcessKeeper keeper;
  std::atomic<SlabId> slab_ids{1};
  absl::StatusOr<std::vector<PreparedPool>> pools =
      PreparePools(config, InForce(stored).pool_targets, &keeper, &slab_ids,
                   FilePools(stored));
  if (!pools.ok()) {
    PrintProblem(pools.status());
    return false;
  }
  PrintPools(*pools);
  const std::map<std::string, std::string> uuids = UuidsOf(*pools);
  const Declared before = WithoutEnded(stored);
  const Declared declared = StartingState(before, config, uuids);
  if (const absl::Status fits = CheckConflicts(before, declared); !fits.ok()) {
    ok = false;
    PrintProblem(fits);
  }
  const std::vector<StartingTenant> tenants =
      MergeTenants(config.tenants, before, declared, uuids);
  PrintTenants(config, tenants);
  ok &= FilesCanBeOpened(config, *pools, tenants.size());
  ok &= GuaranteesFit(tenants, *pools);
  ok &=
      HostPoolFits(HostMemoryOf(config, *pools, device::ReadAvailableMemory()));
  ok &= KeeperAnswers(config.keeper_socket);
  ok &= HttpCanBeServed(config);
  if (!ok) return false;
  std::puts("ok: the broker would start");
  return true;
}

}  // namespace gmb::broker
