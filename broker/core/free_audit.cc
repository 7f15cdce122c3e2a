// The end of a lease as its device shows it: whether the memory of destroyed
// slabs has come back, and which tenant owes the rest.
#include "broker/core/free_audit.h"

#include <algorithm>
#include <utility>

namespace gmb::broker {

uint64_t FreeAudit::Shortfall() const {
  const uint64_t expected = baseline_ > live_ ? baseline_ - live_ : 0;
  return expected > free_ ? expected - free_ : 0;
}

uint64_t FreeAudit::outside_bytes() const {
  const uint64_t shortfall = Shortfall();
  return shortfall > unreturned_sum_ ? shortfall - unreturned_sum_ : 0;
}

uint64_t FreeAudit::unreturned_outside_bytes() const {
  const uint64_t outside = outside_bytes();
  return std::min(unreturned_sum_,
                  strangers_ > outside ? strangers_ - outside : 0);
}

uint64_t FreeAudit::risen_bytes() const {
  const uint64_t explained = live_ + free_ + unreturned_sum_;
  return explained > baseline_ + tolerance_ ? explained - baseline_ : 0;
}

void FreeAudit::RaiseBaseline(uint64_t bytes) {
  baseline_ += std::min(bytes, risen_bytes());
}

void FreeAudit::OnCreated(uint64_t bytes) {
  live_ += bytes;
  free_ -= std::min(free_, bytes);
}

void FreeAudit::OnReadyDestroyed(uint64_t bytes) {
  live_ -= bytes;
  free_ += bytes;
}

void FreeAudit::OnDestroyed(quota::TenantId tenant,
                            const Destroyed& destroyed) {
  const uint64_t after = destroyed.free_after + destroyed.created_bytes;
  const uint64_t before = destroyed.free_before;
  const uint64_t rise = after > before ? after - before : 0;
  const uint64_t explained = rise + destroyed.own_bytes;
  const uint64_t held =
      destroyed.bytes > explained ? destroyed.bytes - explained : 0;
  live_ -= destroyed.bytes;
  free_ = destroyed.free_after;
  if (held > tolerance_) {
    unreturned_[tenant] += held;
    unreturned_sum_ += held;
  } else if (rise > destroyed.bytes) {
    Credit(rise - destroyed.bytes);
  }
  const uint64_t shortfall = Shortfall();
  if (unreturned_sum_ > shortfall) Credit(unreturned_sum_ - shortfall);
}

void FreeAudit::Inherit(const std::map<quota::TenantId, uint64_t>& owed) {
  for (const auto& [tenant, bytes] : owed) {
    uint64_t& owes = unreturned_[tenant];
    if (bytes <= owes) continue;
    unreturned_sum_ += bytes - owes;
    owes = bytes;
  }
}

void FreeAudit::OnFreeRead(uint64_t free_bytes) {
  OnReading(free_bytes, std::move(held_));
}

void FreeAudit::OnReading(uint64_t free_bytes,
                          std::map<quota::TenantId, uint64_t> held) {
  const uint64_t before = Shortfall();
  free_ = free_bytes;
  held_ = std::move(held);
  const uint64_t now = Shortfall();
  if (before > now + tolerance_) Credit(before - now);
  ChargeHeld();
  if (unreturned_sum_ > now) Credit(unreturned_sum_ - now);
}

void FreeAudit::OnStrangers(uint64_t bytes) { strangers_ = bytes; }

void FreeAudit::Credit(uint64_t bytes) {
  for (auto it = unreturned_.begin(); it != unreturned_.end() && bytes > 0;) {
    const auto held = held_.find(it->first);
    const uint64_t kept = held == held_.end() ? 0 : held->second;
    const uint64_t paid =
        std::min(bytes, it->second - std::min(it->second, kept));
    it->second -= paid;
    unreturned_sum_ -= paid;
    bytes -= paid;
    it = it->second == 0 ? unreturned_.erase(it) : std::next(it);
  }
}

void FreeAudit::ChargeHeld() {
  for (const auto& [tenant, bytes] : held_) {
    uint64_t& owed = unreturned_[tenant];
    if (owed >= bytes) continue;
    unreturned_sum_ += bytes - owed;
    owed = bytes;
  }
}

}  // namespace gmb::broker
