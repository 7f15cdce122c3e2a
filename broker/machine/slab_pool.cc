// The slabs of one device pool: of which ones a lease is made, which must be
// created or destroyed for it, and where they go at its end.
#include "broker/machine/slab_pool.h"

#include <algorithm>

namespace gmb::broker {

namespace {

// Some 20 ms of the device worker's time for slabs of 1 GiB.
constexpr size_t kSlabsAStep = 16;

}  // namespace

SlabPool::Options SlabPool::DefaultOptions(uint64_t pool_bytes,
                                           uint64_t granularity_bytes,
                                           uint64_t largest_bytes) {
  constexpr uint64_t kLargest = uint64_t{1} << 30;
  constexpr uint64_t kFewest = 32;
  constexpr uint64_t kMost = 1024;
  uint64_t size = granularity_bytes;
  while (size * 2 <= kLargest &&
         (size * 2 <= pool_bytes / kFewest || size < largest_bytes / kMost)) {
    size *= 2;
  }
  return {.ready_slab_bytes = size, .float_target_bytes = size};
}

uint64_t SlabPool::HandlesFor(uint64_t bytes) const {
  if (options_.one_slab_a_lease) return 1;
  return bytes / options_.ready_slab_bytes +
         (bytes % options_.ready_slab_bytes != 0 ? 1 : 0);
}

uint64_t SlabPool::UsedBytes() const {
  return granted_ + returned_.bytes() + ready_.bytes() + creating_ready_ +
         scrubbing_ + lost_.unreturned_bytes + lost_.missing_bytes +
         lost_.orphaned_bytes;
}

int64_t SlabPool::Float(uint64_t coming_bytes) const {
  return static_cast<int64_t>(capacity_ + coming_bytes) -
         static_cast<int64_t>(UsedBytes());
}

Condemned SlabPool::PopReturned() {
  const ReturnedSlabs::Returned first = returned_.Pop();
  scrubbing_ += first.slab.bytes;
  return {first.slab, first.tenant};
}

// Bytes being scrubbed are as good as float here: the device worker destroys
// in order, before it creates.
void SlabPool::CoverPromises(TakePlan* plan) {
  while (Float(scrubbing_) < 0 && !returned_.empty()) {
    plan->destroy.push_back(PopReturned());
  }
  while (Float(scrubbing_) < 0) {
    std::optional<Condemned> ready = GiveUpReady();
    if (!ready.has_value()) return;  // the create will tell
    plan->destroy.push_back(*ready);
  }
}

TakePlan SlabPool::Take(quota::TenantId tenant, uint64_t bytes) {
  TakePlan plan;
  for (uint64_t left = bytes; left > 0;) {
    const uint64_t size = options_.one_slab_a_lease
                              ? left
                              : std::min(left, options_.ready_slab_bytes);
    left -= size;
    ready_.NoteAsked(size);
    std::optional<Slab> there = returned_.Take(tenant, size);
    if (!there.has_value()) there = ready_.Take(size);
    if (there.has_value()) {
      plan.taken.push_back(*there);
      continue;
    }
    plan.create_bytes.push_back(size);
    creating_ += size;
  }
  granted_ += bytes;
  granted_slabs_ += plan.taken.size() + plan.create_bytes.size();
  if (!plan.create_bytes.empty()) CoverPromises(&plan);
  return plan;
}

void SlabPool::CreateFailed(uint64_t bytes) {
  granted_ -= bytes;
  creating_ -= bytes;
  --granted_slabs_;
}

std::optional<Condemned> SlabPool::GiveUpReady() {
  const std::optional<Slab> slab = ready_.TakeLargest();
  if (!slab.has_value()) return std::nullopt;
  scrubbing_ += slab->bytes;
  return Condemned{*slab, std::nullopt};
}

bool SlabPool::Return(quota::TenantId tenant, const std::vector<Slab>& slabs,
                      quota::Instant expires) {
  if (returned_.size() + slabs.size() > options_.max_returned_slabs)
    return false;
  for (const Slab& slab : slabs) {
    granted_ -= slab.bytes;
    --granted_slabs_;
    returned_.Keep({slab, tenant, expires});
  }
  return true;
}

std::vector<Condemned> SlabPool::Condemn(quota::TenantId tenant,
                                         const std::vector<Slab>& slabs) {
  std::vector<Condemned> condemned;
  condemned.reserve(slabs.size());
  for (const Slab& slab : slabs) {
    granted_ -= slab.bytes;
    --granted_slabs_;
    scrubbing_ += slab.bytes;
    condemned.push_back({slab, tenant});
  }
  return condemned;
}

void SlabPool::Destroyed(uint64_t bytes) { scrubbing_ -= bytes; }

void SlabPool::Spared(const std::vector<Condemned>& slabs, quota::Instant now) {
  for (const Condemned& spared : slabs) {
    scrubbing_ -= spared.slab.bytes;
    if (spared.last_holder.has_value()) {
      returned_.Keep(
          {spared.slab, *spared.last_holder, now + options_.reuse_for});
    } else {
      ready_.Keep(spared.slab);
    }
  }
}

// Of what the float has too much, or of a whole slab that would be used for
// that. Where hardly anybody asks for a size any more its slabs become whole
// ones. Not more in a step than the float: the device's worker is soon free.
void SlabPool::RefillTails(Refill* refill) {
  if (options_.max_ready_tails == 0) return;
  const auto target = static_cast<int64_t>(options_.float_target_bytes);
  const bool idle = creating_ready_ == 0 && scrubbing_ == 0;
  if (options_.one_slab_a_lease || !idle || Float() < target) return;
  const uint64_t whole = options_.ready_slab_bytes;
  auto spare = static_cast<uint64_t>(Float() - target);
  refill->create_bytes = ready_.TailsToMake(spare, kSlabsAStep);
  const bool may_destroy = lost_.missing_bytes == 0;
  if (refill->create_bytes.empty() && may_destroy && ready_.LacksTails()) {
    if (const std::optional<Slab> slab = ready_.Take(whole)) {
      scrubbing_ += whole;
      refill->destroy.push_back({*slab, std::nullopt});
      spare += whole;
      refill->create_bytes = ready_.TailsToMake(spare, kSlabsAStep);
    }
  }
  for (const uint64_t bytes : refill->create_bytes) creating_ready_ += bytes;
  if (!refill->create_bytes.empty() || !may_destroy) return;
  for (const Slab& slab : ready_.TakeUnwanted(kSlabsAStep)) {
    scrubbing_ += slab.bytes;
    refill->destroy.push_back({slab, std::nullopt});
  }
}

std::optional<SlabPool::Refill> SlabPool::NextRefill(quota::Instant now) {
  Refill refill;
  const auto target = static_cast<int64_t>(options_.float_target_bytes);
  const uint64_t not_left = granted_ + options_.float_target_bytes +
                            lost_.unreturned_bytes + lost_.missing_bytes +
                            lost_.orphaned_bytes;
  ready_.Update(now, capacity_ - std::min(capacity_, not_left));
  while (lost_.missing_bytes == 0 && !returned_.empty() &&
         returned_.next_expiry() <= now &&
         refill.destroy.size() < kSlabsAStep) {
    refill.destroy.push_back(PopReturned());
    const uint64_t bytes = refill.destroy.back().slab.bytes;
    if (!options_.one_slab_a_lease &&
        Float(scrubbing_) - static_cast<int64_t>(bytes) >= target &&
        ready_.Wants(bytes, refill.create_bytes)) {
      creating_ready_ += bytes;
      refill.create_bytes.push_back(bytes);
    }
  }
  if (!refill.destroy.empty()) return refill;
  RefillTails(&refill);
  if (!refill.create_bytes.empty() || !refill.destroy.empty()) return refill;
  const uint64_t size = options_.ready_slab_bytes;
  if (!options_.one_slab_a_lease && creating_ready_ == 0 &&
      Float() - static_cast<int64_t>(size) >= target &&
      ready_.size() < options_.max_ready_slabs) {
    creating_ready_ = size;
    refill.create_bytes.push_back(size);
    return refill;
  }
  // Bytes on their way back are waited for before a ready slab is given up.
  if (Float() < target && scrubbing_ == 0) {
    if (std::optional<Condemned> ready = GiveUpReady()) {
      refill.destroy.push_back(*ready);
      return refill;
    }
    // A pool that was made smaller: nothing ready is left to give.
    if (Float() < 0 && lost_.missing_bytes == 0 && !returned_.empty()) {
      refill.destroy.push_back(PopReturned());
      return refill;
    }
  }
  return std::nullopt;
}

std::optional<SlabPool::Refill> SlabPool::NextShrink() {
  Refill refill;
  // Beyond it by what is unreturned or missing: that is no shrink.
  while (UsedBytes() - scrubbing_ - lost_.unreturned_bytes -
                 lost_.missing_bytes - lost_.orphaned_bytes >
             capacity_ &&
         refill.destroy.size() < kSlabsAStep) {
    if (std::optional<Condemned> ready = GiveUpReady()) {
      refill.destroy.push_back(*ready);
    } else if (lost_.missing_bytes == 0 && !returned_.empty()) {
      refill.destroy.push_back(PopReturned());
    } else {
      break;
    }
  }
  if (refill.destroy.empty()) return std::nullopt;
  return refill;
}

void SlabPool::ReadyCreated(const Slab& slab) {
  creating_ready_ -= slab.bytes;
  ready_.Keep(slab);
}

void SlabPool::ReadyFailed(uint64_t bytes) { creating_ready_ -= bytes; }

Composition SlabPool::composition() const {
  Composition c;
  c.granted_bytes = granted_;
  c.returned_bytes = returned_.bytes();
  c.ready_bytes = ready_.bytes() + creating_ready_;
  // While slabs are destroyed to make room for others, the same bytes are
  // scrubbing and already granted, or ready: they are shown as such.
  const uint64_t used = UsedBytes();
  const uint64_t promised = used - std::min(used, capacity_);
  const uint64_t twice =
      std::min({promised, scrubbing_, creating_ + creating_ready_});
  c.scrubbing_bytes = scrubbing_ - twice;
  c.float_bytes = capacity_ - std::min(used, capacity_);
  c.capacity_bytes = std::max(capacity_, used - twice);
  c.unreturned_bytes = lost_.unreturned_bytes;
  c.missing_bytes = lost_.missing_bytes + lost_.orphaned_bytes;
  c.slabs = granted_slabs_ + returned_.size() + ready_.size();
  return c;
}

std::optional<quota::Instant> SlabPool::NextExpiry() const {
  if (returned_.empty() || lost_.missing_bytes > 0) return std::nullopt;
  return returned_.next_expiry();
}

}  // namespace gmb::broker
