// `gmb top`: asks the broker, and asks again.
#include "client/cli/top/source.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "proto/error_status.h"

namespace gmb::cli::top {
namespace {

constexpr size_t kMovesKept = 64;
constexpr absl::Duration kTryAgain = absl::Seconds(1);

// The events of a move of memory, or of an obstacle to one. A broker tells of
// them at the pace of its copies, whatever its clients do.
constexpr const char* kMoves[] = {
    "evicted",         "evict_failed",     "restored",       "restore_failed",
    "pause_started",   "terminated",       "not_terminated", "client_overdue",
    "pause_withdrawn", "unreturned_stuck", "quota_pending",  "device_lost",
    "tenant_leaving",  "reclaim_asked"};

v1::WatchRequest OfMoves() {
  v1::WatchRequest request;
  for (const char* const kind : kMoves) request.add_kinds(kind);
  return request;
}

}  // namespace

absl::StatusOr<Look> Take(const AdminClient& client) {
  Look look;
  look.at = absl::Now();
  GMB_ASSIGN_OR_RETURN(look.status, client.GetStatus(v1::GetStatusRequest()));
  v1::ListTenantsRequest tenants;
  tenants.set_without_fields(true);
  GMB_ASSIGN_OR_RETURN(look.tenants, client.ListTenants(tenants));
  GMB_ASSIGN_OR_RETURN(look.sessions,
                       client.ListSessions(v1::ListSessionsRequest()));
  return look;
}

absl::Status CheckIsThere(const Look& look, const std::string& device) {
  const auto& pools = look.status.pools();
  const auto is_it = [&device](const v1::PoolStatus& pool) {
    return pool.device().uuid() == device;
  };
  if (device.empty() || std::any_of(pools.begin(), pools.end(), is_it))
    return absl::OkStatus();
  return proto::MakeError(
      v1::NO_SUCH_DEVICE,
      absl::StrCat("the broker has no such device (`gmb status` shows them): "
                   "device=",
                   device),
      {.field = "device"});
}

Source::Source(std::string socket_dir, absl::Duration delay,
               std::function<void()> changed)
    : socket_dir_(std::move(socket_dir)),
      changed_(std::move(changed)),
      delay_(delay),
      thread_([this] { Run(); }) {}

Source::~Source() {
  // A thread that Stop gave up on is waited for nevertheless: it uses this.
  (void)Stop(absl::ZeroDuration());
  thread_.join();
}

Sight Source::sight() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return sight_;
}

void Source::LookNow() {
  const std::lock_guard<std::mutex> lock(mu_);
  now_ = true;
  wake_.notify_all();
}

void Source::set_delay(absl::Duration delay) {
  const std::lock_guard<std::mutex> lock(mu_);
  delay_ = delay;
  wake_.notify_all();
}

bool Source::Stop(absl::Duration patience) {
  std::unique_lock<std::mutex> lock(mu_);
  stop_ = true;
  if (events_ != nullptr) events_->Cancel();
  wake_.notify_all();
  return wake_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                        [this] { return ended_; });
}

bool Source::stopping() const {
  const std::lock_guard<std::mutex> lock(mu_);
  return stop_;
}

bool Source::Pause(absl::Duration time) {
  const absl::Time start = absl::Now();
  std::unique_lock<std::mutex> lock(mu_);
  while (!stop_ && !now_) {
    const absl::Duration left = start + time - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    wake_.wait_for(lock, absl::ToChronoMicroseconds(left));
  }
  now_ = false;
  return !stop_;
}

void Source::Run() {
  do {
    absl::StatusOr<AdminClient> client = AdminClient::Connect(socket_dir_);
    const absl::Status ended = client.ok() ? LookOn(*client) : client.status();
    const std::lock_guard<std::mutex> lock(mu_);
    if (sight_.trouble.ok()) sight_.trouble_since = absl::Now();
    sight_.trouble = ended;
    changed_();
  } while (Pause(kTryAgain));
  const std::lock_guard<std::mutex> lock(mu_);
  ended_ = true;
  wake_.notify_all();
}

absl::Status Source::LookOn(const AdminClient& client) {
  {
    // It may be another broker: nothing of the last one is compared with it.
    const std::lock_guard<std::mutex> lock(mu_);
    moved_.clear();
    sight_.before = nullptr;
  }
  bool is_first = true;
  const std::unique_ptr<EventReader> events = client.Watch(OfMoves());
  {
    const std::lock_guard<std::mutex> lock(mu_);
    events_ = events.get();
    if (stop_) events->Cancel();
  }
  std::thread listener([this, reader = events.get()] { Listen(reader); });
  absl::Status ended;
  for (absl::Duration delay;;) {
    absl::StatusOr<Look> look = Take(client);
    if (!look.ok()) {
      ended = look.status();
      break;
    }
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (std::exchange(is_first, false)) sight_.look = nullptr;
      delay = delay_;
    }
    Show(*std::move(look));
    if (!Pause(delay)) break;
  }
  {
    const std::lock_guard<std::mutex> lock(mu_);
    events_ = nullptr;
  }
  events->Cancel();
  listener.join();
  (void)events->Finish();  // the calls say what is wrong
  return ended;
}

void Source::Listen(EventReader* events) {
  v1::Event event;
  while (events->Read(&event)) Add(std::move(event));
}

void Source::Add(v1::Event event) {
  const std::lock_guard<std::mutex> lock(mu_);
  if (event.kind() == "evicted" || event.kind() == "restored") {
    Moved& moved = moved_[{event.tenant(), event.device()}];
    (event.kind() == "evicted" ? moved.evicted_bytes : moved.restored_bytes) +=
        event.bytes();
  }
  sight_.moves.push_back(std::move(event));
  if (sight_.moves.size() > kMovesKept) sight_.moves.pop_front();
}

void Source::Show(Look look) {
  const std::lock_guard<std::mutex> lock(mu_);
  // Moves of tenants that are gone are of no use.
  std::set<std::string> names;
  for (const v1::Tenant& tenant : look.tenants.tenants())
    names.insert(tenant.name());
  std::erase_if(moved_, [&](const auto& pool) {
    return !names.contains(pool.first.first);
  });
  look.moved = moved_;
  sight_.before = std::move(sight_.look);
  sight_.look = std::make_shared<const Look>(std::move(look));
  sight_.trouble = absl::OkStatus();
  changed_();
}

}  // namespace gmb::cli::top
