// A session's calls about one lease, in the order of the lease's life.
#include "client/session/lease_calls.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "client/wire.h"

namespace gmb::internal {
namespace {

constexpr absl::Duration kMostWait = absl::Hours(1);  // session.proto

v1::ClientMessage AcquireMessage(uint64_t bytes,
                                 const AcquireOptions& options) {
  v1::ClientMessage message;
  v1::Acquire& acquire = *message.mutable_acquire();
  acquire.set_bytes(bytes);
  acquire.set_device(options.device);
  acquire.set_contents(ContentsToWire(options.contents));
  acquire.set_share_as(options.share_as);
  acquire.set_keep(options.keep);
  return message;
}

}  // namespace

absl::StatusOr<Granted> LeaseCalls::Acquire(uint64_t bytes,
                                            const AcquireOptions& options,
                                            EarlyMapping* early,
                                            Arrivals* arrivals) {
  v1::ClientMessage message = AcquireMessage(bytes, options);
  const absl::Duration wait =
      std::clamp(options.wait, absl::ZeroDuration(), kMostWait);
  *message.mutable_acquire()->mutable_wait() = DurationToWire(wait);
  return calls_.AskForLease(std::move(message), options, wait, early, arrivals);
}

std::vector<uint64_t> LeaseCalls::AskAhead(uint64_t bytes,
                                           const AcquireOptions& options,
                                           size_t count) {
  std::vector<uint64_t> asked;
  asked.reserve(count);
  QueueAhead(bytes, options, count, &asked);
  calls_.Flush();
  return asked;
}

void LeaseCalls::QueueAhead(uint64_t bytes, const AcquireOptions& options,
                            size_t count, std::vector<uint64_t>* asked) {
  v1::ClientMessage message = AcquireMessage(bytes, options);
  message.mutable_acquire()->set_ahead_of_need(true);
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<uint64_t> one = calls_.AskAhead(message);
    if (!one.ok()) return;
    asked->push_back(*one);
  }
}

absl::StatusOr<std::vector<uint64_t>> LeaseCalls::AskWithMore(
    uint64_t bytes, const AcquireOptions& options, size_t ahead) {
  std::vector<uint64_t> asked;
  asked.reserve(1 + ahead);
  v1::ClientMessage message = AcquireMessage(bytes, options);
  *message.mutable_acquire()->mutable_wait() =
      DurationToWire(absl::ZeroDuration());
  GMB_ASSIGN_OR_RETURN(const uint64_t first,
                       calls_.AskAhead(std::move(message)));
  asked.push_back(first);
  QueueAhead(bytes, options, ahead, &asked);
  calls_.Flush();
  return asked;
}

absl::StatusOr<Granted> LeaseCalls::TakeAhead(uint64_t asked,
                                              const AcquireOptions& options,
                                              EarlyMapping* early) {
  return calls_.TakeLease(asked, options, early);
}

void LeaseCalls::ForgetAhead(uint64_t asked) {
  const AcquireOptions options;
  const absl::StatusOr<Granted> granted =
      calls_.TakeLease(asked, options, nullptr);
  if (granted.ok()) ReleaseLater(granted->grant.lease_id());
}

absl::StatusOr<Granted> LeaseCalls::Attach(const std::string& name,
                                           const AcquireOptions& options,
                                           EarlyMapping* early) {
  v1::ClientMessage message;
  const absl::Duration wait =
      std::clamp(options.wait, absl::ZeroDuration(), kMostWait);
  message.mutable_attach()->set_name(name);
  *message.mutable_attach()->mutable_wait() = DurationToWire(wait);
  return calls_.AskForLease(std::move(message), options, wait, early, nullptr);
}

absl::StatusOr<Granted> LeaseCalls::Export(uint64_t lease_id,
                                           const std::string& key) {
  v1::ClientMessage message;
  message.mutable_export_lease()->set_lease_id(lease_id);
  message.mutable_export_lease()->set_key(key);
  const AcquireOptions options;
  return calls_.AskForLease(std::move(message), options, absl::ZeroDuration(),
                            nullptr, nullptr);
}

absl::StatusOr<Granted> LeaseCalls::AttachExported(uint64_t lease_id,
                                                   const std::string& key,
                                                   EarlyMapping* early) {
  v1::ClientMessage message;
  message.mutable_attach()->mutable_exported()->set_lease_id(lease_id);
  message.mutable_attach()->mutable_exported()->set_key(key);
  const AcquireOptions options;
  return calls_.AskForLease(std::move(message), options, absl::ZeroDuration(),
                            early, nullptr);
}

absl::Status LeaseCalls::DropShared(const std::string& name) {
  GMB_RETURN_IF_ERROR(calls_.CheckAlive());
  v1::ClientMessage message;
  message.mutable_drop()->set_name(name);
  return calls_.Ask(std::move(message)).status();
}

void LeaseCalls::Mapped(uint64_t lease_id, std::shared_ptr<MappedLease> lease) {
  v1::ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease_id);
  calls_.SendSoon(std::move(message));
  mover_.Add(lease_id, std::move(lease));
}

absl::Status LeaseCalls::Seal(uint64_t lease_id) {
  GMB_RETURN_IF_ERROR(calls_.CheckAlive());
  v1::ClientMessage message;
  message.mutable_seal()->set_lease_id(lease_id);
  return calls_.Ask(std::move(message)).status();
}

void LeaseCalls::StopMoving(uint64_t lease_id) { mover_.Remove(lease_id); }

absl::Status LeaseCalls::Release(uint64_t lease_id) {
  if (!calls_.CheckAlive().ok()) return calls_.fork_guard().Check();
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  const absl::Status released = calls_.Ask(std::move(message)).status();
  // When the session has ended meanwhile, the broker took the lease back with
  // it.
  return released.ok() || calls_.CheckAlive().ok() ? released
                                                   : absl::OkStatus();
}

void LeaseCalls::ReleaseLater(uint64_t lease_id) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  calls_.Send(std::move(message));
}

}  // namespace gmb::internal
