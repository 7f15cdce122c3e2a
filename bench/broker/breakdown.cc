#include "bench/broker/breakdown.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "bench/device/steps.h"
#include "client/cli/tenant_identity.h"
#include "client/lease/mapper_cache.h"
#include "client/session/notifier.h"
#include "client/session/session.h"
#include "client/session/trim_hook.h"

namespace gmb::bench {
namespace {

using internal::Arrivals;
using internal::Granted;
using internal::Session;
using SteadyClock = std::chrono::steady_clock;

// The library's own interface to a device, in which importing, mapping and
// closing are one step.
absl::StatusOr<std::vector<Step>> MapByMapper(
    device::Mapper& mapper, std::vector<device::ShareableHandle> handles,
    const std::vector<uint64_t>& slab_bytes, uint64_t bytes) {
  const absl::Time start = absl::Now();
  absl::StatusOr<std::unique_ptr<device::MappedRange>> range =
      mapper.Reserve(bytes, {}, device::Protection::kReadWrite);
  if (!range.ok()) return range.status();
  const absl::Time reserved = absl::Now();
  absl::Status status = (*range)->Map(std::move(handles), slab_bytes);
  const absl::Time mapped = absl::Now();
  if (status.ok()) status = (*range)->Unmap();
  if (!status.ok()) return status;
  return std::vector<Step>{{"reserve", reserved - start},
                           {"import + map + close", mapped - reserved},
                           {"unmap", absl::Now() - mapped}};
}

absl::StatusOr<std::vector<Step>> MapAndUnmap(const Session& session,
                                              internal::MapperCache* mappers,
                                              Granted granted) {
  auto mapper = mappers->Get(session.welcome(), granted.grant.device());
  if (!mapper.ok()) return mapper.status();
  std::vector<device::ShareableHandle> handles = granted.slabs.TakeHandles();
  if ((*mapper)->info().kind == device::DeviceKind::kVmm) {
    return RunClientSteps((*mapper)->info(), std::move(handles),
                          granted.slabs.slab_bytes());
  }
  return MapByMapper(**mapper, std::move(handles), granted.slabs.slab_bytes(),
                     granted.grant.bytes());
}

}  // namespace

absl::Status MeasureBreakdown(const Bench& bench, uint64_t bytes, int rounds) {
  ClientOptions client;
  client.socket_dir = cli::TenantSocketDir(bench.socket_dir, kTenantA);
  const auto session = Session::Open(
      client, std::make_shared<internal::Notifier>(nullptr, nullptr),
      std::make_shared<internal::TrimHook>(nullptr));
  if (!session.ok()) return session.status();
  internal::MapperCache mappers;
  AcquireOptions request;
  request.device = bench.uuid;
  request.wait = absl::Seconds(30);
  for (int i = -1; i < rounds; ++i) {
    if (absl::Status rest = Settle(bench); !rest.ok()) return rest;
    Arrivals arrivals;
    const SteadyClock::time_point start = SteadyClock::now();
    absl::StatusOr<Granted> granted =
        (*session)->leases().Acquire(bytes, request, nullptr, &arrivals);
    const SteadyClock::time_point both = SteadyClock::now();
    if (!granted.ok()) return granted.status();
    const uint64_t lease_id = granted->grant.lease_id();
    const absl::StatusOr<std::vector<Step>> steps =
        MapAndUnmap(**session, &mappers, *std::move(granted));
    if (!steps.ok()) return steps.status();
    const absl::Time before_mapped = absl::Now();
    (*session)->leases().Mapped(lease_id,
                                nullptr);  // without a gate, nobody moves it
    const absl::Time told = absl::Now();
    (*session)->leases().StopMoving(lease_id);
    absl::Status released = (*session)->leases().Release(lease_id);
    if (!released.ok()) return released;
    if (i < 0) continue;
    const auto add = [&](const std::string& step, absl::Duration time) {
      bench.results->Add(bytes, "  of it: " + step, time);
    };
    add("asked -> its slabs came", absl::FromChrono(arrivals.slabs - start));
    add("asked -> its grant came", absl::FromChrono(arrivals.grant - start));
    add("asked -> the caller has both", absl::FromChrono(both - start));
    for (const auto& [name, time] : *steps) add(name, time);
    add("tell Mapped", told - before_mapped);
    add("tell Release -> Released", absl::Now() - told);
  }
  return absl::OkStatus();
}

absl::Status MeasureFreeReading(device::Allocator* allocator, uint64_t bytes,
                                int rounds, Results* results) {
  for (int i = -1; i < rounds; ++i) {
    const absl::Time start = absl::Now();
    const absl::StatusOr<uint64_t> read = allocator->FreeBytes();
    const absl::Time end = absl::Now();
    if (!read.ok()) return read.status();
    if (i >= 0) results->Add(bytes, "FreeBytes, one reading", end - start);
  }
  return absl::OkStatus();
}

}  // namespace gmb::bench
