// How much of a lease has a true copy in the host pool.
#include "broker/machine/backed.h"

#include <chrono>

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kLately = std::chrono::minutes(10);

}  // namespace

bool IsBacked(const State& state, const Lease& lease) {
  if (lease.contents() != v1::PRESERVE ||
      state.host_books->TrueCopy(lease.id) == nullptr) {
    return false;
  }
  if (lease.sharing->sealed || lease.move->residence == Residence::kEvicted)
    return true;
  const Session* session = state.sessions->Find(lease.request.session);
  return session != nullptr && session->gate != nullptr &&
         session->gate->UnusedSince(lease.copy->backed_epoch);
}

uint32_t BackedSlabs(const State& state, const Lease& lease) {
  if (lease.copy->backed_slabs == 0 || lease.sharing->sealed)
    return lease.copy->backed_slabs;
  const Session* session = state.sessions->Find(lease.request.session);
  const bool holds = session != nullptr &&
                     session->gate->UnusedSince(lease.copy->backed_epoch);
  return holds ? lease.copy->backed_slabs : 0;
}

uint64_t BackedBytes(const State& state, const Lease& lease) {
  if (IsBacked(state, lease)) return lease.bytes;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < BackedSlabs(state, lease); ++i)
    bytes += lease.held->slabs[i].bytes;
  return bytes;
}

bool BacksAhead(const State& state, const Pool& pool, quota::Instant now) {
  const quota::BackingOptions& options = state.options.backing;
  if (options.bytes_per_second > 0) return true;
  const auto& lacked_at = pool.plan->lacked_at;
  return options.sealed_bytes_per_second > 0 && lacked_at.has_value() &&
         now - *lacked_at < kLately;
}

}  // namespace gmb::broker
