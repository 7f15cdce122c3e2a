// The demo: looks at the broker all the time, and checks what it says.
#include "client/cli/demo/monitor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"
#include "client/cli/views/pool_bar.h"

namespace gmb::cli {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(80);

}  // namespace

v1::TenantPool Snapshot::tenant(const std::string& name) const {
  for (const v1::Tenant& tenant : tenants.tenants()) {
    if (tenant.name() == name && !tenant.pools().empty())
      return tenant.pools(0);
  }
  return {};
}

Monitor::Monitor(const AdminClient* admin, std::stop_token stop,
                 std::function<void(const Snapshot&)> show)
    : admin_(admin), stop_(std::move(stop)), show_(std::move(show)) {
  thread_ = std::thread([this] { Run(); });
}

Monitor::~Monitor() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    quit_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

absl::StatusOr<Snapshot> Monitor::Take() const {
  GMB_ASSIGN_OR_RETURN(v1::GetStatusResponse status,
                       admin_->GetStatus(v1::GetStatusRequest()));
  GMB_ASSIGN_OR_RETURN(v1::ListTenantsResponse tenants,
                       admin_->ListTenants(v1::ListTenantsRequest()));
  if (status.pools().empty())
    return absl::InternalError("the broker shows no pool");
  return Snapshot{std::move(status), std::move(tenants)};
}

void Monitor::Run() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!quit_) {
    const uint64_t number = ++begun_;
    lock.unlock();
    absl::StatusOr<Snapshot> snapshot = Take();
    if (snapshot.ok()) show_(*snapshot);
    lock.lock();
    if (!snapshot.ok()) {
      failed_ = snapshot.status();
      changed_.notify_all();
      return;
    }
    const std::string unsound = WhatIsUnsound(*snapshot);
    ++findings_.snapshots;
    if (!unsound.empty() && findings_.unsound++ == 0)
      findings_.first_unsound = unsound;
    latest_ = *std::move(snapshot);
    taken_ = number;
    changed_.notify_all();
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kPeriod),
                      [this] { return quit_; });
  }
}

absl::StatusOr<Snapshot> Monitor::Await(
    const std::string& what, const std::function<bool(const Snapshot&)>& holds,
    absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  std::unique_lock<std::mutex> lock(mu_);
  const uint64_t begun_before = begun_;
  uint64_t seen = 0;
  while (true) {
    if (taken_ > begun_before && taken_ != seen) {
      seen = taken_;
      if (holds(latest_)) return latest_;
    }
    if (stop_.stop_requested()) return absl::CancelledError("interrupted");
    if (!failed_.ok()) return failed_;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("did not come about: ", what));
    }
    changed_.wait_for(lock, stop_, absl::ToChronoMilliseconds(left), [&] {
      return (taken_ > begun_before && taken_ != seen) || !failed_.ok();
    });
  }
}

Monitor::Findings Monitor::findings() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return findings_;
}

void Monitor::Findings::Add(const Findings& later) {
  if (unsound == 0) first_unsound = later.first_unsound;
  snapshots += later.snapshots;
  unsound += later.unsound;
}

std::string WhatIsUnsound(const Snapshot& snapshot) {
  for (const v1::PoolStatus& pool : snapshot.status.pools()) {
    uint64_t sum = 0;
    for (const PoolPart& part : PartsOf(pool)) sum += part.bytes;
    if (sum != pool.capacity_bytes()) {
      return absl::StrCat("the parts of ", pool.device().uuid(), " are ", sum,
                          " B, its capacity ", pool.capacity_bytes(), " B");
    }
  }
  for (const v1::Tenant& tenant : snapshot.tenants.tenants()) {
    for (const v1::TenantPool& pool : tenant.pools()) {
      const v1::QuotaView& view = pool.view();
      if (view.leased_bytes() > view.limit_bytes() + view.over_limit_bytes()) {
        return absl::StrCat("tenant ", tenant.name(), " holds ",
                            SizeText(view.leased_bytes()), " with a limit of ",
                            SizeText(view.limit_bytes()));
      }
    }
  }
  return "";
}

}  // namespace gmb::cli
