// A large broker and what weighs on it.
#include "bench/broker/scale_stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/tenant_identity.h"

namespace gmb::bench {
namespace {

// A broker that works over everything for each call may need minutes.
constexpr absl::Duration kStagePatience = absl::Minutes(5);
constexpr uint32_t kMostSecondLeases = 64;
// For the tenants that are measured and that wait.
constexpr uint32_t kHandlesKept = 40;
constexpr uint32_t kMoreSessions = 10;

uint64_t MiB(uint64_t n) { return n << 20; }

std::string Tenants(const ScaleOptions& options) {
  std::string yaml =
      absl::StrCat("tenants:\n  - {name: ", kProbe,
                   ", limit: 100%}\n  - {name: ", kGreedy, ", limit: 100%}\n");
  const uint32_t sessions = options.sessions / options.tenants + 1;
  for (uint32_t i = 0; i < options.tenants; ++i) {
    absl::StrAppend(&yaml, "  - {name: ", ScaleTenant(i),
                    ", limit: 100%, max_sessions: ", sessions, "}\n");
  }
  return yaml;
}

v1::Amount Bytes(uint64_t bytes) {
  v1::Amount amount;
  amount.set_bytes(bytes);
  return amount;
}

v1::Amount Everything() {
  v1::Amount amount;
  amount.set_fraction(1);
  return amount;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScaleStage>> ScaleStage::Set(
    const ScaleOptions& options, const std::string& dir) {
  std::unique_ptr<ScaleStage> stage(new ScaleStage(options));
  if (absl::Status started = stage->StartBroker(dir); !started.ok())
    return started;
  if (absl::Status held = stage->StartFleet(dir); !held.ok()) return held;
  for (auto [tenant, client] : {std::pair(kProbe, &stage->probe_),
                                std::pair(kGreedy, &stage->greedy_)}) {
    absl::StatusOr<std::unique_ptr<Client>> connected = stage->Connect(tenant);
    if (!connected.ok()) return connected.status();
    *client = *std::move(connected);
  }
  return stage;
}

absl::Status ScaleStage::StartBroker(const std::string& dir) {
  // So many leases and a quarter more; half of that waits in vain.
  const uint64_t bytes = MiB(64) + options_.leases * kScaleLeaseBytes / 4 * 5;
  cli::BrokerProcess::Options gmbd;
  gmbd.program = options_.gmbd;
  gmbd.device_flags = {
      "--device",
      absl::StrCat("host:", bytes),
      "--max-sessions",
      absl::StrCat(options_.sessions + kMoreSessions),
      "--max-handles",
      absl::StrCat(options_.leases + kMostSecondLeases + kHandlesKept)};
  if (options_.second_pool) {
    second_bytes_ = 2 * kMostSecondLeases * kScaleLeaseBytes;
    gmbd.device_flags.push_back("--device");
    gmbd.device_flags.push_back(absl::StrCat("host:", second_bytes_));
  }
  gmbd.config = Tenants(options_);
  gmbd.dir = dir;
  absl::StatusOr<std::unique_ptr<cli::BrokerProcess>> broker =
      cli::BrokerProcess::Start(gmbd);
  if (!broker.ok()) return broker.status();
  broker_ = *std::move(broker);
  return absl::OkStatus();
}

absl::Status ScaleStage::StartFleet(const std::string& dir) {
  absl::StatusOr<v1::GetStatusResponse> status =
      broker_->admin().GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return status.status();
  device_ = status->pools(0).device().uuid();
  if (options_.second_pool) second_device_ = status->pools(1).device().uuid();
  FleetPlan plan;
  plan.socket_dir = broker_->socket_dir();
  plan.log_path = dir + "/fleet.log";
  plan.tenants = options_.tenants;
  plan.sessions = options_.sessions;
  plan.processes = options_.processes;
  plan.second_device = second_device_;
  plan.second_leases =
      options_.second_pool ? std::min(options_.sessions, kMostSecondLeases) : 0;
  const uint64_t kept = kHandlesKept + plan.second_leases;
  if (status->max_handles() <= kept)
    return absl::ResourceExhaustedError("open files allow no leases");
  plan.leases = static_cast<uint32_t>(
      std::min<uint64_t>(options_.leases, status->max_handles() - kept));
  absl::StatusOr<Fleet> fleet = Fleet::Start(plan);
  if (!fleet.ok()) return fleet.status();
  fleet_.emplace(*std::move(fleet));
  v1::SetTenantRequest probe;
  probe.set_name(kProbe);
  probe.set_device(device_);
  *probe.mutable_guarantee() = Bytes(MiB(64));
  if (const auto set = broker_->admin().SetTenant(probe, kStagePatience);
      !set.ok())
    return set.status();
  status = broker_->admin().GetStatus(v1::GetStatusRequest(), kStagePatience);
  if (!status.ok()) return status.status();
  at_first_ = *std::move(status);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Client>> ScaleStage::Connect(
    const char* tenant) const {
  ClientOptions options;
  options.socket_dir = cli::TenantSocketDir(broker_->socket_dir(), tenant);
  options.connect_timeout = kStagePatience;
  return Client::Connect(std::move(options));
}

absl::Status ScaleStage::SetLimits(const v1::Amount& limit) const {
  const uint32_t of_pool = options_.second_pool ? 2 : 0;
  const uint32_t demands =
      options_.demands - std::min(options_.demands, of_pool);
  for (uint32_t i = 0; i < std::min(demands, options_.tenants); ++i) {
    v1::SetTenantRequest request;
    // Not those of the second pool, where there are others.
    request.set_name(ScaleTenant(options_.tenants - 1 - i));
    request.set_device(device_);
    *request.mutable_limit() = limit;
    const auto set = broker_->admin().SetTenant(request, kStagePatience);
    if (!set.ok()) return set.status();
  }
  return absl::OkStatus();
}

absl::Status ScaleStage::PressSecondPool(bool on) const {
  if (!options_.second_pool) return absl::OkStatus();
  v1::ResizePoolRequest resize;
  resize.set_device(second_device_);
  *resize.mutable_size() = Bytes(on ? kScaleLeaseBytes : second_bytes_);
  const auto resized = broker_->admin().ResizePool(resize, kStagePatience);
  if (!resized.ok()) return resized.status();
  v1::DrainPoolRequest drain;
  drain.set_device(second_device_);
  drain.set_draining(on);
  return broker_->admin().DrainPool(drain, kStagePatience).status();
}

absl::Status ScaleStage::Load() {
  if (absl::Status set = SetLimits(Bytes(kScaleLeaseBytes)); !set.ok())
    return set;
  if (absl::Status pressed = PressSecondPool(true); !pressed.ok())
    return pressed;
  const v1::PoolStatus& pool = at_first_.pools(0);
  const uint64_t more_than_free =
      pool.capacity_bytes() - pool.granted_bytes() + kScaleLeaseBytes;
  waiter_ = std::make_unique<Waiter>(greedy_.get(), more_than_free, device_,
                                     absl::Hours(1));
  return waiter_->AwaitQueued();
}

absl::Status ScaleStage::Unload() {
  waiter_.reset();
  if (absl::Status pressed = PressSecondPool(false); !pressed.ok())
    return pressed;
  return SetLimits(Everything());
}

absl::StatusOr<uint64_t> ScaleStage::BytesOut() const {
  const absl::StatusOr<v1::GetStatusResponse> status =
      broker_->admin().GetStatus(v1::GetStatusRequest(), kStagePatience);
  if (!status.ok()) return status.status();
  uint64_t bytes = 0;
  for (const v1::PoolStatus& pool : status->pools()) {
    bytes += pool.granted_bytes() + pool.returned_bytes() +
             pool.scrubbing_bytes() + pool.unreturned_bytes();
  }
  return bytes;
}

}  // namespace gmb::bench
