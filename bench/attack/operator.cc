// An operator who deletes the attacker's tenant and makes it anew, or takes its
// memory, while the attack goes on and while its control does.
#include "bench/attack/operator.h"

#include <utility>

#include "absl/time/clock.h"
#include "bench/attack/attack_round.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kBetweenWorks = absl::Milliseconds(100);
constexpr int64_t kReclaimNanos = 100'000'000;
constexpr absl::Duration kAnewPatience = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<Operator>> Operator::Start(
    const std::string& socket_dir, Work work) {
  absl::StatusOr<cli::AdminClient> admin =
      cli::AdminClient::Connect(socket_dir);
  if (!admin.ok()) return admin.status();
  return std::unique_ptr<Operator>(new Operator(*std::move(admin), work));
}

Operator::Operator(cli::AdminClient admin, Work work)
    : admin_(std::move(admin)), work_(work), thread_([this] { GoOn(); }) {}

Operator::~Operator() { (void)Stop(); }

absl::Status Operator::Stop() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
  if (work_ != Work::kMakesAnew) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + kAnewPatience;
  absl::Status made = MakeTenant();
  while (!made.ok() && absl::Now() < deadline) {
    absl::SleepFor(kBetweenWorks);
    made = MakeTenant();
  }
  return made;
}

void Operator::GoOn() {
  while (!stopped_ && work_ != Work::kNone) {
    if (work_ == Work::kMakesAnew) {
      DeleteTenant();
      (void)MakeTenant();  // its directory may be too odd just now
    } else {
      Reclaim();
    }
    absl::SleepFor(kBetweenWorks);
  }
}

absl::Status Operator::MakeTenant() const {
  v1::SetTenantRequest request;
  request.set_name(kMallory);
  request.mutable_limit()->set_fraction(1);
  return admin_.SetTenant(request).status();
}

void Operator::DeleteTenant() const {
  v1::DeleteTenantRequest request;
  request.set_name(kMallory);
  (void)admin_.DeleteTenant(request);
}

void Operator::Reclaim() const {
  v1::ReclaimRequest request;
  request.set_tenant(kMallory);
  request.mutable_wait()->set_nanos(kReclaimNanos);
  (void)admin_.Reclaim(request, absl::Nanoseconds(kReclaimNanos));
}

}  // namespace gmb::bench
