// PyTorch's segments: the leases that torch has.
#include "client/python/native/segments.h"

#include <iterator>
#include <utility>

#include "client/python/native/gmb_library.h"

namespace gmb::python {
namespace {

uint64_t Address(const void* address) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
}

}  // namespace

void ReleaseLease(gmb_lease* lease) {
  TheLibrary().gmb_lease_release_soon(lease);
}

void Segments::Add(gmb_lease* lease, int32_t device, uint64_t group,
                   bool sealed) {
  const gmb_torch_segment view{
      .address = Address(TheLibrary().gmb_lease_data(lease)),
      .bytes = TheLibrary().gmb_lease_size_bytes(lease),
      .group = group,
      .device = device,
      .sealed = sealed ? 1 : 0};
  const std::lock_guard lock(mu_);
  by_address_.emplace(view.address, Segment{lease, view});
  bytes_ += view.bytes;
  ++changes_;
}

gmb_lease* Segments::Take(const void* address) {
  const std::lock_guard lock(mu_);
  const auto found = by_address_.find(Address(address));
  if (found == by_address_.end()) return nullptr;
  gmb_lease* const lease = found->second.lease;
  bytes_ -= found->second.view.bytes;
  by_address_.erase(found);
  ++changes_;
  if (captures_ == 0) return lease;
  kept_.push_back(lease);
  return nullptr;
}

std::optional<gmb_torch_segment> Segments::Find(const void* address) {
  const std::lock_guard lock(mu_);
  const auto after = by_address_.upper_bound(Address(address));
  if (after == by_address_.begin()) return std::nullopt;
  const gmb_torch_segment& view = std::prev(after)->second.view;
  if (Address(address) - view.address >= view.bytes) return std::nullopt;
  return view;
}

// Under the lock, so that no lease is freed meanwhile: it is done once, after
// loading, and each takes a round trip.
gmb_error* Segments::Seal(uint64_t group) {
  const std::lock_guard lock(mu_);
  for (auto& [address, segment] : by_address_) {
    if (segment.view.group != group || segment.view.sealed != 0) continue;
    gmb_error* const error = TheLibrary().gmb_lease_seal(segment.lease);
    if (error != nullptr) return error;
    segment.view.sealed = 1;
  }
  return nullptr;
}

void Segments::BeginCapture() {
  const std::lock_guard lock(mu_);
  ++captures_;
}

std::vector<gmb_lease*> Segments::EndCapture() {
  const std::lock_guard lock(mu_);
  if (captures_ > 0) --captures_;
  if (captures_ > 0) return {};
  return std::exchange(kept_, {});
}

bool Segments::capturing() {
  const std::lock_guard lock(mu_);
  return captures_ > 0;
}

gmb_torch_totals Segments::totals() {
  const std::lock_guard lock(mu_);
  return {.segments = by_address_.size(),
          .bytes = bytes_,
          .waiting = 0,
          .changes = changes_,
          .trims = 0};
}

}  // namespace gmb::python
