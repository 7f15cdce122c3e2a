// The client that notices when its broker is away, and when one is back.
#include "bench/broker/restart_waiter.h"

#include <utility>

namespace gmb::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;
constexpr absl::Duration kWait = absl::Minutes(1);
constexpr std::chrono::seconds kPatience{60};

}  // namespace

absl::StatusOr<std::unique_ptr<RestartWaiter>> RestartWaiter::Start(
    const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  return std::unique_ptr<RestartWaiter>(new RestartWaiter(*std::move(client)));
}

RestartWaiter::~RestartWaiter() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  thread_.join();
}

void RestartWaiter::Watch(Clock::time_point dead) {
  const std::lock_guard<std::mutex> lock(mu_);
  dead_ = dead;
  first_.reset();
}

absl::StatusOr<RestartWaiter::Clock::time_point> RestartWaiter::First() {
  std::unique_lock<std::mutex> lock(mu_);
  const bool there = changed_.wait_for(
      lock, kPatience, [this] { return first_.has_value() || !error_.ok(); });
  if (!error_.ok()) return error_;
  if (!there) return absl::DeadlineExceededError("nothing was granted");
  return *first_;
}

void RestartWaiter::Work() {
  AcquireOptions options;
  options.wait = kWait;
  for (;;) {
    absl::StatusOr<Lease> lease = client_->Acquire(kBytes, options);
    if (!Note(lease.status(), true)) return;
    if (!Note(std::move(*lease).Release(), false)) return;
  }
}

bool RestartWaiter::Note(const absl::Status& status, bool granted) {
  const Clock::time_point now = Clock::now();
  const std::lock_guard<std::mutex> lock(mu_);
  error_ = status;
  if (granted && status.ok() && dead_.has_value() && !first_.has_value() &&
      now > *dead_) {
    first_ = now;
  }
  if (!error_.ok() || first_.has_value()) changed_.notify_all();
  return error_.ok() && !stop_;
}

}  // namespace gmb::bench
