// A tenant that works as usual while somebody attacks.
#include "tests/attack/honest_tenant.h"

#include <cstring>
#include <utility>

#include "absl/time/time.h"

namespace gmb::attack {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;
// Long enough for a busy machine; an attack that locks out outlasts it.
constexpr absl::Duration kPatience = absl::Seconds(30);

bool HoldsOnly(const Lease& lease, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(lease.data());
  return bytes[0] == value &&
         std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HonestTenant>> HonestTenant::Open(
    const std::string& socket_dir, unsigned char tag) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  options.connect_timeout = kPatience;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  std::unique_ptr<HonestTenant> tenant(
      new HonestTenant(*std::move(client), tag));
  absl::StatusOr<Lease> held = tenant->Take();
  if (!held.ok()) return held.status();
  tenant->held_ = *std::move(held);
  return tenant;
}

absl::StatusOr<Lease> HonestTenant::Take() {
  AcquireOptions options;
  options.wait = kPatience;
  absl::StatusOr<Lease> lease = client_->Acquire(kBytes, options);
  if (!lease.ok()) return lease;
  if (!HoldsOnly(*lease, 0) && !HoldsOnly(*lease, tag_))
    return absl::DataLossError("fresh memory holds another's bytes");
  std::memset(lease->data(), tag_, lease->size_bytes());
  return lease;
}

absl::Status HonestTenant::Round() {
  absl::StatusOr<Lease> lease = Take();
  if (!lease.ok()) return lease.status();
  if (!HoldsOnly(*lease, tag_))
    return absl::DataLossError("what was written is not there");
  return std::move(*lease).Release();
}

absl::Status HonestTenant::CheckHeld() const {
  if (!client_->status().ok()) return client_->status();
  if (!HoldsOnly(held_, tag_))
    return absl::DataLossError("what it holds has changed");
  return absl::OkStatus();
}

}  // namespace gmb::attack
