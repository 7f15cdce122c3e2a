// A change of the file that would take memory waits until it takes none any
// more.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "broker/daemon/reload.h"

namespace gmb::broker {
namespace {

// After these a tenant may hold less, or be another's wish.
constexpr absl::string_view kReasons[] = {
    "lease_released",     "lease_reclaimed", "evicted",      "session_closed",
    "unreturned_changed", "tenant_changed",  "pool_resized", "pool_grown"};

uint64_t TakesOn(const std::string& device,
                 const std::vector<v1::Change>& changes) {
  for (const v1::Change& change : changes) {
    if (change.device() == device) return change.takes_bytes();
  }
  return 0;
}

void Add(v1::Finding::Severity severity, const std::string& message,
         v1::DiagnoseResponse* response) {
  v1::Finding* const finding = response->add_findings();
  finding->set_severity(severity);
  finding->set_subject("configuration");
  finding->set_message(message);
}

}  // namespace

void Reloader::Stop() {
  if (stopped_.exchange(true)) return;
  deps_.events->Unsubscribe(subscription_);
  // Behind all that was asked for before.
  absl::Notification done;
  deps_.admin->Post([this, &done] {
    deps_.admin->SetFindings(nullptr);
    done.Notify();
  });
  done.WaitForNotification();
}

void Reloader::ListenFor(const std::set<std::string>& tenants) {
  base::MutexLock lock(&mu_);
  waiting_ = tenants;
}

void Reloader::ListenForWaiting() {
  std::set<std::string> tenants;
  for (const HeldBack& one : held_) tenants.insert(one.tenant);
  for (const PendingField& field : behind_) tenants.insert(field.tenant);
  ListenFor(tenants);
}

void Reloader::OnEvent(const v1::Event& event) {
  if (std::find(std::begin(kReasons), std::end(kReasons), event.kind()) ==
      std::end(kReasons))
    return;
  {
    base::MutexLock lock(&mu_);
    // A pool's are of all tenants.
    if (waiting_.empty() ||
        (!event.tenant().empty() && !waiting_.contains(event.tenant())))
      return;
  }
  QueueRetry();
}

void Reloader::QueueRetry() {
  if (retry_queued_.exchange(true)) return;
  deps_.admin->Post([this] {
    retry_queued_ = false;
    if (!stopped_) Retry();
  });
}

bool Reloader::AnyTakesNothing() const {
  const auto changed = [this](const std::string& tenant) {
    const auto now = deps_.core->GetPolicy(tenant);
    const auto kept = kept_.find(tenant);
    return !now.ok() || kept == kept_.end() || *now != kept->second;
  };
  if (std::any_of(
          behind_.begin(), behind_.end(),
          [&](const PendingField& field) { return changed(field.tenant); }))
    return true;
  return std::any_of(held_.begin(), held_.end(), [&](const HeldBack& one) {
    if (!one.device.empty()) {
      const auto wanted = wanted_.find(one.tenant);
      return changed(one.tenant) || wanted == wanted_.end() ||
             TakesOn(one.device, deps_.core->Preview(wanted->second)) == 0;
    }
    const auto tenant = deps_.core->TenantReport(one.tenant);
    return !tenant.ok() || tenant->sessions() == 0 ||
           (HeldBytes(*tenant) == 0 && !overstayed_.contains(one.tenant));
  });
}

void Reloader::Retry() {
  if ((held_.empty() && behind_.empty()) || !AnyTakesNothing()) return;
  const absl::Status applied = Apply(Why::kRetry);
  if (applied.ok()) return;
  // It would be so after each event.
  ListenFor({});
  Fail(applied);
}

void Reloader::AddFindings(v1::DiagnoseResponse* response) const {
  if (!failure_.empty()) {
    Add(v1::Finding::PROBLEM,
        absl::StrCat("the configuration file was read again and is not in "
                     "force: ",
                     failure_),
        response);
  }
  if (!restart_.empty()) {
    Add(v1::Finding::WARNING,
        absl::StrCat("the configuration file has changes that hold after a "
                     "restart alone: ",
                     absl::StrJoin(restart_, "; ")),
        response);
  }
  for (const HeldBack& one : held_)
    Add(v1::Finding::WARNING, PendingText(one, seen_off_.contains(one.tenant)),
        response);
  for (const PendingField& field : behind_) {
    Add(v1::Finding::WARNING,
        absl::StrCat("the limit of tenant ", field.tenant,
                     " in the configuration file waits for the end of what an "
                     "operator set for a time: `gmb tenant reset ",
                     field.tenant, "` ends it now"),
        response);
  }
}

}  // namespace gmb::broker
