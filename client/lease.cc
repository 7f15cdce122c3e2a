// The C++ interface: one lease, from its grant to its release.
#include "gmb/lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/gate/gate_scope.h"
#include "client/lease_impl.h"
#include "client/no_throw.h"

namespace gmb {
namespace {

absl::Status EmptyLease() {
  return absl::FailedPreconditionError("gmb: this lease is empty");
}

absl::Status CheckRange(uint64_t size_bytes, uint64_t offset_bytes,
                        uint64_t bytes) {
  if (offset_bytes <= size_bytes && bytes <= size_bytes - offset_bytes)
    return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("gmb: the range leaves the lease: offset=", offset_bytes,
                   " bytes=", bytes, " lease bytes=", size_bytes));
}

constexpr char kWrite[] = "only the session that acquired it writes";

absl::Status NotOurs(const char* what) {
  return absl::FailedPreconditionError(
      absl::StrCat("gmb: this lease is attached, to be read: ", what));
}

// Calls `copy(mapper, address)` in a scope, if the range lies in the lease and
// this process may touch it. Nobody unmaps once the session is over, so that
// what is mapped then needs no scope, which a gate that is closed refuses.
template <typename Impl, typename Copy>
absl::Status WithRange(Impl* impl, uint64_t offset_bytes, uint64_t bytes,
                       Copy copy) noexcept {
  return internal::NoThrow([&]() -> absl::Status {
    if (impl == nullptr) return EmptyLease();
    internal::Session& session = *impl->session;
    if (session.InForkedChild()) return session.CheckAlive();
    GMB_RETURN_IF_ERROR(
        CheckRange(impl->mapping->size_bytes(), offset_bytes, bytes));
    const absl::StatusOr<internal::GateScope> scope =
        internal::GateScope::Enter(session.gate(), session.answer_timeout());
    if (!scope.ok() && session.CheckAlive().ok()) return scope.status();
    return impl->mapping->WhileMapped([&](device::Mapper& mapper, char* start) {
      return copy(mapper, start + offset_bytes);
    });
  });
}

}  // namespace

Lease::Lease() = default;
Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&& other) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) Drop(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

Lease::~Lease() { Drop(std::move(impl_)); }

void Lease::Drop(std::unique_ptr<Impl> impl) noexcept {
  if (impl == nullptr) return;
  if (impl->session->InForkedChild()) {
    static_cast<void>(impl.release());  // the parent's: leaked on purpose
    return;
  }
  // A failure that cannot be reported here shows at the broker, as unreturned
  // bytes.
  internal::NoThrow([&impl] {
    impl->session->leases().StopMoving(impl->id);
    const absl::Status unmapped = impl->mapping->Release();
    impl->session->leases().ReleaseLater(impl->id);
    impl.reset();
    return unmapped;
  }).IgnoreError();
}

void* Lease::data() const {
  return impl_ == nullptr ? nullptr : impl_->mapping->data();
}

uint64_t Lease::size_bytes() const {
  return impl_ == nullptr ? 0 : impl_->mapping->size_bytes();
}

bool Lease::attached() const {
  return impl_ != nullptr && impl_->mapping->attached();
}

uint64_t Lease::id() const { return impl_ == nullptr ? 0 : impl_->id; }

const std::string& Lease::device() const {
  static const auto* const kNone = new std::string;
  return impl_ == nullptr ? *kNone : impl_->device;
}

absl::Status Lease::Release() && {
  return internal::NoThrow([impl = std::move(impl_)]() mutable {
    if (impl == nullptr) return EmptyLease();
    if (impl->session->InForkedChild())
      return impl.release()->session->CheckAlive();
    impl->session->leases().StopMoving(impl->id);
    const absl::Status unmapped = impl->mapping->Release();
    const absl::Status released = impl->session->leases().Release(impl->id);
    return unmapped.ok() ? released : unmapped;
  });
}

absl::Status internal::ReleaseIdle(Lease lease) {
  return NoThrow([impl = std::move(lease.impl_)]() mutable {
    if (impl == nullptr) return EmptyLease();
    if (impl->session->InForkedChild())
      return impl.release()->session->CheckAlive();
    impl->session->leases().StopMoving(impl->id);
    absl::Status unmapped = impl->mapping->ReleaseIdle();
    impl->session->leases().ReleaseLater(impl->id);
    return unmapped;
  });
}

absl::Status Lease::Seal() {
  return internal::NoThrow([this] {
    if (impl_ == nullptr) return EmptyLease();
    if (attached()) return NotOurs("its writer has sealed it");
    return impl_->session->leases().Seal(impl_->id);
  });
}

absl::Status Lease::CopyToHost(void* to, uint64_t offset_bytes,
                               uint64_t bytes) const {
  return WithRange(impl_.get(), offset_bytes, bytes,
                   [&](device::Mapper& mapper, char* at) {
                     return mapper.CopyToHost(to, at, bytes);
                   });
}

absl::Status Lease::CopyFromHost(uint64_t offset_bytes, const void* from,
                                 uint64_t bytes) {
  if (attached()) return NotOurs(kWrite);
  return WithRange(impl_.get(), offset_bytes, bytes,
                   [&](device::Mapper& mapper, char* at) {
                     return mapper.CopyToDevice(at, from, bytes);
                   });
}

absl::Status Lease::Fill(uint64_t offset_bytes, uint8_t value, uint64_t bytes) {
  if (attached()) return NotOurs(kWrite);
  return WithRange(impl_.get(), offset_bytes, bytes,
                   [&](device::Mapper& mapper, char* at) {
                     return mapper.Fill(at, value, bytes);
                   });
}

}  // namespace gmb
