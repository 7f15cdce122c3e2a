// A device's jobs: slabs created in turn with those destroyed, handles kept,
// the free figure read and explained.
#include "broker/core/device_tasks.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/patience.h"

namespace gmb::broker {
namespace {

// A session ends whose slab is not imported.
constexpr absl::Duration kImportPatience = absl::Seconds(1);

// The codes of allocator.h are the device's: of a keeper that is away none may
// say that the device is lost, or full.
absl::Status OfKeeper(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("a slab's handle could not be kept: ", status.message()));
}

}  // namespace

DeviceTasks::Imports DeviceTasks::Import(device::Allocator* allocator,
                                         const Keeper& keeper,
                                         absl::Span<const SlabRecord> kept) {
  Imports imports;
  base::Patience patience(kImportPatience);
  for (const SlabRecord& slab : kept) {
    if (imports.slabs.contains(slab.id)) {
      imports.errors.emplace(
          slab.id, absl::DataLossError("the slab is recorded more than once"));
      continue;
    }
    const SharedHandle handle = keeper.Get(slab.id);
    const absl::StatusOr<device::SlabKey> key =
        handle != nullptr
            ? patience.Do(
                  [&] { return allocator->Import(*handle, slab.bytes); })
            : absl::NotFoundError("the keeper does not have the slab");
    if (!key.ok()) {
      imports.errors.emplace(slab.id, key.status());
      continue;
    }
    imports.slabs.emplace(slab.id, Slab{slab.id, *key, slab.bytes});
    imports.bytes += slab.bytes;
  }
  return imports;
}

absl::StatusOr<std::unique_ptr<DeviceTasks>> DeviceTasks::Create(
    std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
    std::atomic<SlabId>* slab_ids, absl::Span<const SlabRecord> kept,
    uint64_t known_baseline) {
  for (const SlabRecord& slab : kept) {
    SlabId next = slab_ids->load();
    while (next <= slab.id &&
           !slab_ids->compare_exchange_weak(next, slab.id + 1)) {
    }
  }
  Imports imports = Import(allocator.get(), *keeper, kept);
  const absl::StatusOr<uint64_t> free_bytes = allocator->FreeBytes();
  if (!free_bytes.ok()) return free_bytes.status();
  // Clients have contexts there by now, which the first broker did not find.
  const uint64_t baseline =
      std::max(*free_bytes + imports.bytes,
               std::min(known_baseline, allocator->info().total_bytes));
  return std::unique_ptr<DeviceTasks>(new DeviceTasks(
      std::move(allocator), keeper, slab_ids, baseline, std::move(imports)));
}

DeviceTasks::DeviceTasks(std::unique_ptr<device::Allocator> allocator,
                         Keeper* keeper, std::atomic<SlabId>* slab_ids,
                         uint64_t baseline, Imports imports)
    : allocator_(std::move(allocator)),
      keeper_(keeper),
      slab_ids_(slab_ids),
      baseline_(baseline),
      imports_(std::move(imports)),
      audit_(baseline, allocator_->info().granularity_bytes) {
  if (auto users = allocator_->Processes(); users.ok()) {
    for (const auto& user : *users) users_before_[user.pid] = user.used_bytes;
  }
  for (const auto& [id, slab] : imports_.slabs) {
    alive_[id] = slab;
    audit_.OnCreated(slab.bytes);
  }
}

DeviceTasks::~DeviceTasks() {
  if (leave_alone_) return;
  // The process is going: what cannot be given back now goes with it.
  for (const auto& [id, slab] : alive_) {
    (void)keeper_->Remove(id);
    (void)allocator_->Destroy(slab.key);
  }
}

DeviceResult DeviceTasks::Do(DeviceJob job) {
  DeviceResult result;
  result.job = std::move(job);
  if (const auto* prepare = std::get_if<PrepareJob>(&result.job)) {
    Work(prepare->slabs, &result);
  } else if (const auto* refill = std::get_if<RefillJob>(&result.job)) {
    Work(refill->slabs, &result);
  } else if (const auto* destroy = std::get_if<DestroyJob>(&result.job)) {
    Work({destroy->slabs, {}}, &result);
  } else if (const auto* audit = std::get_if<AuditJob>(&result.job)) {
    Audit(*audit);
  }
  if (!result.status.ok() || audit_.unreturned_bytes() > 0 ||
      !allocator_->Held().empty()) {
    Look();
  } else {
    last_holders_.clear();
    stuck_.clear();
  }
  result.status.Update(lost_);
  result.reading = {
      .unreturned = audit_.unreturned(),
      .stuck = stuck_,
      .outside_bytes = audit_.outside_bytes(),
      .unreturned_outside_bytes = audit_.unreturned_outside_bytes(),
      .risen_bytes = audit_.risen_bytes(),
      .free_bytes = audit_.free_bytes(),
      .baseline_bytes = audit_.baseline_bytes(),
      .users = users_,
      .destroyed_is_kept = keeper_->KeepsRemoved()};
  return result;
}

// Reads the free figure, and whose the slabs are that the allocator says are
// not back.
void DeviceTasks::Look() {
  const uint64_t free_bytes = ReadFree();
  std::map<device::SlabKey, LastHolder> still_held;
  std::map<quota::TenantId, uint64_t> held_bytes;
  stuck_.clear();
  for (const device::HeldSlab& slab : allocator_->Held()) {
    const auto known = last_holders_.find(slab.key);
    const LastHolder holder =
        known == last_holders_.end() ? std::nullopt : known->second;
    still_held.emplace(slab.key, holder);
    if (holder.has_value()) held_bytes[*holder] += slab.bytes;
    if (slab.stuck.empty()) continue;
    StuckBytes& stuck = stuck_[holder];
    stuck.bytes += slab.bytes;
    stuck.why = slab.stuck;
  }
  last_holders_ = std::move(still_held);
  audit_.OnReading(free_bytes, std::move(held_bytes));
}

namespace {

// One reading of the free figure a holder: what does not come back is that
// holder's.
std::map<LastHolder, std::vector<Slab>> ByHolder(
    const std::vector<Condemned>& slabs) {
  std::map<LastHolder, std::vector<Slab>> groups;
  for (const Condemned& condemned : slabs) {
    groups[condemned.last_holder].push_back(condemned.slab);
  }
  return groups;
}

// The bytes that the creates may use before anything is destroyed: what the
// plan takes from the float.
uint64_t FromFloat(const HandOver& slabs) {
  uint64_t freed = 0;
  uint64_t wanted = 0;
  for (const Condemned& condemned : slabs.destroy)
    freed += condemned.slab.bytes;
  for (const uint64_t bytes : slabs.create_bytes) wanted += bytes;
  return wanted > freed ? wanted - freed : 0;
}

}  // namespace

void DeviceTasks::Work(const HandOver& slabs, DeviceResult* result) {
  uint64_t spare = FromFloat(slabs);
  size_t next = 0;
  absl::Status created;
  const auto create_what_fits = [&] {
    while (created.ok() && next < slabs.create_bytes.size() &&
           slabs.create_bytes[next] <= spare) {
      created = CreateAndKeep(slabs.create_bytes[next], &result->created);
      if (created.ok()) spare -= slabs.create_bytes[next++];
    }
  };
  create_what_fits();
  const bool hands_over = !std::holds_alternative<DestroyJob>(result->job);
  for (const auto& [holder, group] : ByHolder(slabs.destroy)) {
    FreeAudit::Destroyed change;
    const uint64_t locked =
        host_pool_ == nullptr ? 0 : host_pool_->lock_progress().ended_bytes;
    if (holder.has_value() && created.ok()) {
      change.free_before = ReadFree();
      audit_.OnFreeRead(change.free_before);
    }
    const uint64_t created_before = audit_.live_bytes();
    for (const Slab& slab : group) {
      // A ready one serves a request of its size, and destroyed it is nobody's.
      const bool in_vain =
          hands_over && !holder.has_value() && keeper_->KeepsRemoved();
      if (!created.ok() || in_vain) {
        result->spared.push_back({slab, holder});
        continue;
      }
      Destroy(slab, holder, result);
      change.bytes += slab.bytes;
      spare += slab.bytes;
      create_what_fits();
    }
    if (change.bytes == 0) continue;
    change.created_bytes = audit_.live_bytes() - created_before;
    if (holder.has_value()) {
      change.free_after = ReadFree();
      change.own_bytes = OwnBytesSince(locked);
      audit_.OnDestroyed(*holder, change);
    } else {
      audit_.OnReadyDestroyed(change.bytes);
    }
  }
  if (created.ok() && !result->spared.empty() &&
      next < slabs.create_bytes.size()) {
    created = absl::ResourceExhaustedError(
        "the keeper does not answer, and would keep the bytes of ready slabs "
        "that are destroyed for others: let it go on, or end it");
  }
  result->status.Update(created);
}

// The driver's page tables of what was being page-locked: 8 bytes for each 4
// KiB, in granules; and the context, which the first lock makes.
uint64_t DeviceTasks::OwnBytesSince(uint64_t locked_bytes) const {
  if (host_pool_ == nullptr) return 0;
  const uint64_t touched =
      host_pool_->lock_progress().begun_bytes - locked_bytes;
  if (touched == 0) return 0;
  constexpr uint64_t kContextBytes = uint64_t{1} << 30;
  const uint64_t granule = allocator_->info().granularity_bytes;
  const uint64_t tables = (touched / 512 / granule + 2) * granule;
  return tables + (locked_bytes == 0 ? kContextBytes : 0);
}

absl::Status DeviceTasks::CreateAndKeep(uint64_t bytes,
                                        std::vector<Slab>* created) {
  absl::StatusOr<device::CreatedSlab> made = allocator_->Create(bytes);
  if (!made.ok()) return made.status();
  const Slab slab{slab_ids_->fetch_add(1), made->key, bytes};
  if (absl::Status kept = keeper_->Put(slab.id, std::move(made->exported));
      !kept.ok()) {
    (void)allocator_->Destroy(slab.key);
    return OfKeeper(kept);
  }
  alive_[slab.id] = slab;
  audit_.OnCreated(bytes);
  created->push_back(slab);
  return absl::OkStatus();
}

void DeviceTasks::Destroy(const Slab& slab, LastHolder holder,
                          DeviceResult* result) {
  alive_.erase(slab.id);
  last_holders_[slab.key] = holder;
  result->status.Update(OfKeeper(keeper_->Remove(slab.id)));
  result->status.Update(allocator_->Destroy(slab.key));
  result->destroyed_bytes += slab.bytes;
}

void DeviceTasks::Audit(const AuditJob& job) {
  audit_.Inherit(job.inherited);
  Look();
  audit_.RaiseBaseline(job.raise_baseline_by);
  absl::StatusOr<std::vector<device::ProcessUsage>> users =
      allocator_->Processes();
  users_.clear();
  if (!users.ok()) return;  // a hint less
  ListUsers(*users);
  if (audit_.unreturned_bytes() == 0) return;
  uint64_t strangers = 0;
  for (const device::ProcessUsage& user : *users) {
    if (user.pid == getpid() ||
        std::find(job.clients.begin(), job.clients.end(), user.pid) !=
            job.clients.end()) {
      continue;
    }
    const auto before = users_before_.find(user.pid);
    const uint64_t known = before == users_before_.end() ? 0 : before->second;
    strangers += user.used_bytes - std::min(user.used_bytes, known);
  }
  audit_.OnStrangers(strangers);
}

void DeviceTasks::ListUsers(absl::Span<const device::ProcessUsage> processes) {
  for (const device::ProcessUsage& user : processes) {
    if (user.pid != getpid())
      users_.push_back({user.pid, user.used_bytes, user.program});
  }
  std::sort(users_.begin(), users_.end(),
            [](const DeviceUser& a, const DeviceUser& b) {
              return a.used_bytes > b.used_bytes;
            });
  if (users_.size() > kMostDeviceUsers) users_.resize(kMostDeviceUsers);
}

uint64_t DeviceTasks::ReadFree() {
  absl::StatusOr<uint64_t> bytes = allocator_->FreeBytes();
  // Where all that is asked for is ready already nothing else would tell.
  if (absl::IsUnavailable(bytes.status())) lost_ = bytes.status();
  // One that does not answer is assumed unchanged.
  return bytes.ok() ? *bytes : audit_.free_bytes();
}

}  // namespace gmb::broker
