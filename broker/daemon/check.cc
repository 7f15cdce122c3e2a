// `gmbd --check`: what would be served, without serving it.
#include "broker/daemon/check.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "broker/core/in_process_keeper.h"
#include "broker/daemon/fd_setup.h"
#include "broker/daemon/pool_setup.h"
#include "broker/daemon/tenant_setup.h"
#include "device/devices.h"
#include "device/hostpool/pool_mapping.h"
#include "proto/amount_text.h"
#include "quota/tenant_quota.h"

namespace gmb::broker {
namespace {

// A machine that is to serve host memory alone lacks nothing without a driver.
void PrintCuda(bool gpu_configured) {
  const device::CudaProbe probe = device::ProbeCuda();
  const bool usable = probe.built_in && probe.problem.empty();
  if (!usable && !gpu_configured) {
    std::puts("cuda: not needed, as no GPU is configured");
  } else if (!probe.built_in) {
    std::puts("cuda: this build has no CUDA devices (built without cuda.h)");
  } else if (!probe.problem.empty()) {
    std::printf("cuda: %s\n", probe.problem.c_str());
  } else {
    std::printf("cuda: driver %s\n", probe.driver_version.c_str());
  }
  for (const device::DeviceInfo& gpu : probe.gpus) {
    std::printf("  %s  %s  %s\n", gpu.uuid.c_str(), gpu.name.c_str(),
                proto::FormatBytes(gpu.total_bytes).c_str());
  }
}

// As the broker itself would find at its start, for the tenants of the file.
bool GuaranteesFit(const BrokerConfig& config,
                   const std::vector<PreparedPool>& pools) {
  bool fit = true;
  for (const PreparedPool& pool : pools) {
    const device::DeviceInfo& info = pool.options.worker->info();
    std::vector<quota::TenantQuota> quotas;
    for (const TenantConfig& tenant : config.tenants) {
      const bool by_name = tenant.policy.device_quotas.contains(pool.name);
      quotas.push_back(tenant.policy.QuotaOn(by_name ? pool.name : info.uuid));
    }
    const auto refused = quota::CheckQuotas(quotas, pool.options.target_bytes,
                                            info.granularity_bytes);
    if (!refused.has_value()) continue;
    fit = false;
    if (refused->refusal.reason == quota::Reason::kOvercommitted) {
      std::printf(
          "problem: %s: the guarantees are above the pool by %s: lower them\n",
          info.uuid.c_str(),
          proto::FormatBytes(refused->refusal.deficit_bytes).c_str());
    } else {
      std::printf("problem: %s: tenant %s: the guarantee is above the limit\n",
                  info.uuid.c_str(),
                  config.tenants[refused->index].policy.name.c_str());
    }
  }
  return fit;
}

// Whether the memory is there; it is asked for as at a start, but not used.
bool HostPoolFits(uint64_t bytes) {
  if (bytes == 0) {
    std::puts(
        "host pool: none: leases whose contents are to be kept stay on the "
        "device");
    return true;
  }
  const absl::StatusOr<device::PoolMapping> mapping =
      device::PoolMapping::Create(bytes);
  if (!mapping.ok()) {
    std::printf("problem: %s\n",
                std::string(mapping.status().message()).c_str());
    return false;
  }
  std::printf("host pool: %s, %s\n", proto::FormatBytes(bytes).c_str(),
              device::PageKindName(mapping->page_kind()));
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
                      const std::vector<PreparedPool>& pools) {
  const absl::StatusOr<FdPlan> plan =
      PlanFds(config, pools, config.tenants.size());
  if (!plan.ok()) {
    std::printf("problem: %s\n", std::string(plan.status().message()).c_str());
    return false;
  }
  if (!plan->warning.empty())
    std::printf("warning: %s\n", plan->warning.c_str());
  return true;
}

// Of those in the file: what operators have made is in the state directory,
// which may be another broker's that runs.
void PrintTenants(const BrokerConfig& config) {
  std::printf("tenants: %zu\n", config.tenants.size());
  std::set<std::string> names;
  for (const TenantConfig& tenant : config.tenants)
    names.insert(tenant.policy.name);
  const std::string warning =
      DefaultTenantWarning(config.default_tenant, names);
  if (!warning.empty()) {
    std::printf("warning: %s; tenants that operators made are not seen here\n",
                warning.c_str());
  }
}

}  // namespace

bool Check(const BrokerConfig& config) {
  for (const std::string& warning : config.warnings)
    std::printf("warning: %s\n", warning.c_str());
  PrintCuda(std::any_of(config.devices.begin(), config.devices.end(),
                        [](const DeviceConfig& device) {
                          return device.kind != device::DeviceKind::kHost;
                        }));
  InProcessKeeper keeper;
  std::atomic<SlabId> slab_ids{1};
  absl::StatusOr<std::vector<PreparedPool>> pools =
      PreparePools(config, /*stored_targets=*/{}, &keeper, &slab_ids);
  if (!pools.ok()) {
    std::printf("problem: %s\n", std::string(pools.status().message()).c_str());
    return false;
  }
  PrintPools(*pools);
  PrintTenants(config);
  // Each says what it finds.
  bool ok = FilesCanBeOpened(config, *pools);
  ok &= GuaranteesFit(config, *pools);
  ok &= HostPoolFits(config.host_pool_bytes);
  if (!ok) return false;
  std::puts("ok: the broker would start");
  return true;
}

}  // namespace gmb::broker
