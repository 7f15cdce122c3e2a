// The configuration file is read again while the broker serves (SIGHUP).
#include "broker/daemon/reload.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "broker/config/config.h"
#include "broker/config/restart.h"
#include "broker/daemon/changed_guarantees.h"
#include "broker/daemon/file_state.h"
#include "broker/daemon/store_setup.h"
#include "broker/declared/changes.h"
#include "broker/declared/conflict.h"
#include "broker/declared/uids.h"
#include "broker/log/logging.h"
#include "broker/server/declared_policy.h"

namespace gmb::broker {
namespace {

// A pipe that was read at the start has nothing more to say, which is not the
// same as an empty file.
absl::Status CheckReadable(const std::string& path) {
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "gmbd was started without --config: there is no file to read");
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the configuration is not a regular file, and cannot be "
                     "read again: ",
                     path));
  }
  return absl::OkStatus();
}

absl::StatusOr<BrokerConfig> ReadFile(const Flags& flags) {
  GMB_RETURN_IF_ERROR(CheckReadable(flags.config_file));
  return LoadConfig(flags);
}

// Pools and devices are those of the start.
FileState StateOf(BrokerConfig file, const BrokerConfig& running,
                  const std::map<std::string, std::string>& uuids) {
  file.devices = running.devices;
  file.pool = running.pool;
  return FileStateOf(file, uuids);
}

// By tenant, without those that are new.
std::map<std::string, std::string> TokensOf(
    const std::vector<TenantPolicy>& changed, const Core& core) {
  std::map<std::string, std::string> tokens;
  for (const TenantPolicy& policy : changed) {
    const absl::StatusOr<TenantPolicy> known = core.GetPolicy(policy.name);
    if (known.ok()) tokens[policy.name] = known->token;
  }
  return tokens;
}

// Of what is not declared, in words: tokens are secret. A token that another
// tenant keeps is no change yet.
std::string SecretChanges(const std::map<std::string, std::string>& before,
                          const Core& core) {
  std::vector<std::string> all;
  for (const auto& [name, token] : before) {
    const absl::StatusOr<TenantPolicy> now = core.GetPolicy(name);
    if (now.ok() && now->token != token)
      all.push_back(absl::StrCat(name, ": another token"));
  }
  return absl::StrJoin(all, "; ");
}

std::set<std::string> NamesOf(const Declared& declared) {
  std::set<std::string> names;
  for (const auto& [name, subject] : declared.tenants) names.insert(name);
  return names;
}

std::string Joined(const std::string& a, const std::string& b) {
  return absl::StrCat(a, a.empty() || b.empty() ? "" : "; ", b);
}

}  // namespace

Reloader::Reloader(Flags flags, BrokerConfig running,
                   std::map<std::string, std::string> uuids, Deps deps)
    : flags_(std::move(flags)),
      running_(std::move(running)),
      uuids_(std::move(uuids)),
      deps_(std::move(deps)),
      news_(deps_.events, deps_.clock),
      drain_deadline_ns_(absl::ToInt64Nanoseconds(running_.drain_deadline)),
      file_(running_) {
  deps_.admin->SetFindings(
      [this](v1::DiagnoseResponse* response) { AddFindings(response); });
  subscription_ = deps_.events->Subscribe(
      [this](const v1::Event& event) { OnEvent(event); });
}

Reloader::~Reloader() { Stop(); }

void Reloader::Reload() {
  // One that is to come reads what the file says then.
  if (queued_.exchange(true)) return;
  deps_.admin->Post([this] {
    queued_ = false;
    if (!stopped_) Read();
  });
}

void Reloader::Read() {
  absl::StatusOr<BrokerConfig> config = ReadFile(flags_);
  if (!config.ok()) return Fail(config.status());
  for (const std::string& warning : config->warnings)
    LogEvent(LogLevel::kWarning, "configuration", {{"message", warning}});
  restart_ = NeedRestart(running_, *config);
  const BrokerConfig before = std::exchange(file_, *std::move(config));
  const absl::Time before_at = std::exchange(read_at_, deps_.clock->WallTime());
  overstayed_.clear();
  const absl::Status applied = Apply(Why::kRead);
  if (!applied.ok()) {
    Fail(NamingLines(applied, before, file_, flags_.config_file));
    file_ = before;
    read_at_ = before_at;
  } else {
    failure_.clear();
    if (deps_.on_read != nullptr) deps_.on_read(file_);
    drain_deadline_ns_ = absl::ToInt64Nanoseconds(file_.drain_deadline);
  }
  if (restart_.empty()) return;
  news_.RestartNeeded(absl::StrJoin(restart_, "; "));
}

void Reloader::Fail(const absl::Status& why) {
  failure_ = std::string(why.message());
  news_.Failed(failure_);
}

absl::StatusOr<Reloader::Plan> Reloader::MakePlan() const {
  Plan plan;
  plan.base = deps_.store->GetDeclared();
  FileState state = StateOf(file_, running_, uuids_);
  for (const PendingField& field : pending_) {
    YieldToLaterWrites(field, &plan.base);
    if (WaitForItsEnd(field, plan.base, &state)) plan.behind.push_back(field);
  }
  plan.merge = MergeFile(plan.base, state, read_at_);
  GMB_RETURN_IF_ERROR(CheckConflicts(plan.base, plan.merge.next));
  GMB_RETURN_IF_ERROR(CheckUids(plan.base, plan.merge.next));
  Declared staying = plan.merge.next;
  for (const std::string& name : plan.merge.leaving) Forget(name, &staying);
  plan.tenants =
      MergeTenants(file_.tenants, plan.base, staying, uuids_,
                   UidsInForce(staying, *deps_.core, NamesOf(staying)));
  for (StartingTenant& tenant : plan.tenants) {
    TenantPolicy& policy = tenant.config.policy;
    const absl::StatusOr<TenantPolicy> known =
        deps_.core->GetPolicy(policy.name);
    if (known.ok() && !seen_off_.contains(policy.name)) {
      KeepLeftOut(DeclaredPolicy(plan.base, policy.name, *deps_.core), *known,
                  &policy);
    }
    if (!known.ok() || *known != policy) plan.changed.push_back(policy);
  }
  return plan;
}

absl::Status Reloader::OpenDoors(const Plan& plan,
                                 std::vector<std::function<void()>>* undo) {
  for (const StartingTenant& tenant : plan.tenants) {
    const std::string& name = tenant.config.policy.name;
    const SocketAccess& access = tenant.config.socket;
    if (!deps_.core->GetPolicy(name).ok()) {
      GMB_RETURN_IF_ERROR(deps_.doors.open(name, access));
      undo->emplace_back([this, name] { (void)deps_.doors.close(name); });
      continue;
    }
    GMB_ASSIGN_OR_RETURN(const SocketAccess was,
                         deps_.doors.set_access(name, access));
    if (was == access) continue;
    undo->emplace_back(
        [this, name, was] { (void)deps_.doors.set_access(name, was); });
  }
  return absl::OkStatus();
}

absl::Status Reloader::Apply(Why why) {
  GMB_ASSIGN_OR_RETURN(Plan plan, MakePlan());
  const auto tokens = TokensOf(plan.changed, *deps_.core);
  std::vector<std::function<void()>> undo;
  const auto make = [&]() -> absl::StatusOr<std::vector<HeldBack>> {
    GMB_RETURN_IF_ERROR(OpenDoors(plan, &undo));
    return deps_.core->ApplyFile(
        {plan.changed, plan.merge.leaving,
         why == Why::kRead ? file_.reload_may_reclaim_bytes : 0});
  };
  const absl::StatusOr<std::vector<HeldBack>> held = make();
  if (!held.ok()) {
    for (; !undo.empty(); undo.pop_back()) undo.back()();
    return held.status();
  }
  const std::vector<HeldBack> waited =
      why == Why::kRead ? std::vector<HeldBack>() : held_;
  Keep(*held, &plan);
  const Declared before = deps_.store->GetDeclared();
  StoreFile(before, plan.merge.next, deps_.store);
  for (const TenantPolicy& policy : plan.changed)
    deps_.admin->OnChanged(policy.name);
  std::string changes = Joined(ChangesText(before, plan.merge.next),
                               SecretChanges(tokens, *deps_.core));
  for (const std::string& name : Going(plan))
    changes = Joined(changes, absl::StrCat("tenant ", name, " leaves"));
  if (why == Why::kRead || !changes.empty()) news_.Reloaded(changes);
  for (const HeldBack& one : held_) {
    if (std::find(waited.begin(), waited.end(), one) == waited.end())
      news_.Pending(one, seen_off_.contains(one.tenant));
  }
  Leave(plan);
  // Events before the reload listened are not told again.
  if (!held_.empty() && held_ != waited) QueueRetry();
  return absl::OkStatus();
}

void Reloader::Keep(const std::vector<HeldBack>& held, Plan* plan) {
  held_ = held;
  behind_ = plan->behind;
  pending_ = behind_;
  wanted_.clear();
  kept_.clear();
  const Declared merged = plan->merge.next;
  for (const HeldBack& one : held) {
    if (one.device.empty()) continue;
    pending_.push_back(KeepLimit(one.tenant, one.device, plan->base, merged,
                                 read_at_, &plan->merge.next));
    for (const TenantPolicy& policy : plan->changed) {
      if (policy.name == one.tenant) wanted_[one.tenant] = policy;
    }
  }
  // The core has the old limits for the devices by now; it gets them from the
  // fields in which they are declared.
  for (const auto& [name, wanted] : wanted_) {
    TenantPolicy kept = PolicyOf(name, InForce(plan->merge.next.tenants[name]));
    // Its limits alone are put back: it gets no uid and no token of another.
    const TenantPolicy in_force = deps_.core->GetPolicy(name).value_or(wanted);
    kept.token = in_force.token;
    kept.uids = in_force.uids;
    std::erase_if(kept.device_quotas, [&](const auto& quota) {
      return std::none_of(uuids_.begin(), uuids_.end(), [&](const auto& uuid) {
        return uuid.second == quota.first;
      });
    });
    KeepLeftOut(TenantPolicy(kept), in_force, &kept);
    if (const absl::Status set = deps_.core->SetTenant(kept).status();
        !set.ok()) {
      Fail(set);
    }
    kept_[name] = deps_.core->GetPolicy(name).value_or(kept);
  }
  for (const PendingField& field : behind_) {
    const auto policy = deps_.core->GetPolicy(field.tenant);
    if (policy.ok()) kept_[field.tenant] = *policy;
  }
  ListenForWaiting();
}

}  // namespace gmb::broker
