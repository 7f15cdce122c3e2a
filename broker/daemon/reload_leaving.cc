// Tenants that the file does not name any more: they are seen off, and deleted
// when their last session has ended.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "broker/daemon/reload.h"
#include "broker/daemon/store_setup.h"
#include "broker/declared/merge.h"

namespace gmb::broker {

std::vector<std::string> Reloader::Going(const Plan& plan) const {
  std::vector<std::string> going = plan.merge.leaving;
  std::erase_if(going, [this](const std::string& name) {
    const bool waits =
        std::any_of(held_.begin(), held_.end(), [&](const HeldBack& one) {
          return one.tenant == name && one.device.empty();
        });
    return waits || under_way_.contains(name);
  });
  return going;
}

void Reloader::Leave(const Plan& plan) {
  for (const std::string& name : Going(plan)) SeeOff(name);
  // Those that the file names again.
  for (const StartingTenant& tenant : plan.tenants) {
    const std::string& name = tenant.config.policy.name;
    seen_off_.erase(name);
    // Not one that an operator has started.
    if (under_way_.erase(name) > 0) deps_.core->EndDeparture(name);
  }
}

void Reloader::SeeOff(const std::string& name) {
  const absl::StatusOr<quota::TenantId> id = deps_.core->IdOf(name);
  if (!id.ok()) return;
  seen_off_.insert(name);
  const uint64_t number = ++departures_;
  auto done = [this, name, number](const absl::Status& gone) {
    deps_.admin->Post(
        [this, name, number, gone] { EndLeaving(name, number, gone); });
  };
  // An operator may be seeing it off, or the broker about to stop.
  const absl::Status started = deps_.core->StartDeparture(
      name, absl::ToChronoNanoseconds(file_.drain_deadline), std::move(done));
  if (started.ok()) under_way_[name] = {number, *id};
}

// The file may have been read anew meanwhile, and the name be that of another
// tenant, or it be seen off once more.
void Reloader::EndLeaving(const std::string& name, uint64_t number,
                          const absl::Status& gone) {
  const auto its = under_way_.find(name);
  if (stopped_ || its == under_way_.end() || its->second.number != number)
    return;
  const quota::TenantId id = its->second.tenant;
  under_way_.erase(its);
  const absl::StatusOr<quota::TenantId> present = deps_.core->IdOf(name);
  if (!present.ok() || *present != id) return;
  Declared declared = deps_.store->GetDeclared();
  const auto subject = declared.tenants.find(name);
  if (subject == declared.tenants.end() || subject->second.in_file) {
    deps_.core->EndDeparture(name);
    return;
  }
  if (gone.ok() && Delete(name).ok()) {
    Forget(name, &declared);
    AuditRecord audit = RecordOfBroker("delete_tenant", "out of the file");
    audit.subject = name;
    // The log says so where it cannot be written.
    if (!deps_.store->PutDeclared(declared, audit).ok())
      deps_.store->HoldDeclared(declared);
    deps_.admin->OnChanged(name);
    seen_off_.erase(name);
    return;
  }
  deps_.core->EndDeparture(name);
  overstayed_.insert(name);
  HeldBack stays{.tenant = name, .device = "", .bytes = 0};
  if (const auto report = deps_.core->TenantReport(name); report.ok())
    stays.bytes = HeldBytes(*report);
  held_.push_back(stays);
  ListenForWaiting();
  QueueRetry();  // its last session may have ended just now
  news_.Pending(stays, seen_off_.contains(name));
}

absl::Status Reloader::Delete(const std::string& name) {
  deps_.core->EndKept(name);
  GMB_RETURN_IF_ERROR(deps_.core->BeginDelete(name).status());
  (void)deps_.doors.close(name);
  absl::Status deleted = deps_.core->DeleteTenant(name);
  if (!deleted.ok()) (void)deps_.doors.open(name, {});
  return deleted;
}

}  // namespace gmb::broker
