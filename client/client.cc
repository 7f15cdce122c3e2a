// The C++ interface: one session, its leases and its gate.
#include "gmb/client.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "client/gate/gate.h"
#include "client/lease/hooked_mapper.h"
#include "client/lease/lease_mapping.h"
#include "client/lease/mapped_lease.h"
#include "client/lease/mapper_cache.h"
#include "client/lease_impl.h"
#include "client/no_throw.h"
#include "client/session/joined.h"
#include "client/session/notifier.h"
#include "client/session/session.h"
#include "client/session/trim_hook.h"
#include "client/wire.h"

namespace gmb {

struct Client::Impl {
  // Null: the device is not open yet.
  absl::StatusOr<Lease> Acquire(std::shared_ptr<device::Mapper> mapper,
                                uint64_t bytes, const AcquireOptions& options,
                                uint64_t asked = 0);
  // One of a GPU with virtual memory management.
  absl::StatusOr<std::shared_ptr<device::Mapper>> MapperBy(
      const internal::RangeHooks& hooks, const std::string& device);
  absl::StatusOr<Lease> Map(internal::Granted granted,
                            const AcquireOptions& options,
                            internal::LeaseMapping& mapping);

  std::shared_ptr<internal::Notifier> notifier;
  std::shared_ptr<internal::TrimHook> trim_hook;
  std::shared_ptr<internal::Session> session;
  std::unique_ptr<internal::Joined> joined;  // null: it is this one's own
  std::vector<Device> devices;
  std::vector<std::string> warnings;
  internal::MapperCache mappers;
};

namespace {

// A granted lease that goes back unless it is kept.
class OwedLease {
 public:
  OwedLease(internal::Session& session, uint64_t id)
      : session_(&session), id_(id) {}
  OwedLease(const OwedLease&) = delete;
  OwedLease& operator=(const OwedLease&) = delete;
  ~OwedLease() {
    if (session_ == nullptr) return;
    internal::NoThrow([this] {
      session_->leases().ReleaseLater(id_);
      return absl::OkStatus();
    }).IgnoreError();
  }
  void Keep() { session_ = nullptr; }

 private:
  internal::Session* session_;
  const uint64_t id_;
};

}  // namespace

absl::StatusOr<Lease> Client::Impl::Map(internal::Granted granted,
                                        const AcquireOptions& options,
                                        internal::LeaseMapping& mapping) {
  const v1::Grant& grant = granted.grant;
  OwedLease owed(*session, grant.lease_id());
  if ((!options.device.empty() && grant.device() != options.device) ||
      (mapping.mapper() != nullptr &&
       grant.device() != mapping.mapper()->info().uuid)) {
    mapping.Undo();
    return internal::ProtocolError("a lease on another device than asked for");
  }
  std::shared_ptr<device::Mapper> mapper = mapping.mapper();
  if (mapper == nullptr) {
    GMB_ASSIGN_OR_RETURN(mapper,
                         mappers.Get(session->welcome(), grant.device()));
  }
  GMB_ASSIGN_OR_RETURN(std::unique_ptr<device::MappedRange> range,
                       mapping.Finish(mapper, std::move(granted.slabs)));
  auto mapped = std::make_shared<internal::MappedLease>(
      std::move(mapper), std::move(range), options.access_from,
      grant.attached());
  Lease lease(std::make_unique<Lease::Impl>(session, grant.lease_id(),
                                            grant.device(), mapped));
  owed.Keep();
  session->leases().Mapped(lease.id(), std::move(mapped));
  return lease;
}

absl::StatusOr<Lease> Client::Impl::Acquire(
    std::shared_ptr<device::Mapper> mapper, uint64_t bytes,
    const AcquireOptions& options, uint64_t asked) {
  internal::LeaseMapping mapping(std::move(mapper), bytes, options.access_from,
                                 device::Protection::kReadWrite);
  internal::EarlyMapping* const early =
      mapping.mapper() == nullptr ? nullptr : &mapping;
  internal::LeaseCalls& leases = session->leases();
  GMB_ASSIGN_OR_RETURN(internal::Granted granted,
                       asked == 0 ? leases.Acquire(bytes, options, early)
                                  : leases.TakeAhead(asked, options, early));
  return Map(std::move(granted), options, mapping);
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  if (impl_->session->InForkedChild()) {
    static_cast<void>(impl_.release());  // the parent's: leaked on purpose
    return;
  }
  if (impl_->joined != nullptr) return;
  impl_->notifier->Stop();
  impl_->trim_hook->Stop();
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  return internal::NoThrow([&]() -> absl::StatusOr<std::unique_ptr<Client>> {
    auto impl = std::make_unique<Impl>();
    impl->notifier = std::make_shared<internal::Notifier>(
        std::move(options.on_budget_changed), std::move(options.on_draining));
    impl->trim_hook =
        std::make_shared<internal::TrimHook>(std::move(options.on_trim));
    GMB_ASSIGN_OR_RETURN(
        impl->session,
        internal::Session::Open(options, impl->notifier, impl->trim_hook));
    const v1::Welcome& welcome = impl->session->welcome();
    std::transform(welcome.devices().begin(), welcome.devices().end(),
                   std::back_inserter(impl->devices), internal::DeviceFromWire);
    impl->warnings.assign(welcome.warnings().begin(), welcome.warnings().end());
    return std::unique_ptr<Client>(new Client(std::move(impl)));
  });
}

absl::StatusOr<std::unique_ptr<Client>> internal::Join(
    const Client& client, const ClientOptions& options) {
  return NoThrow([&]() -> absl::StatusOr<std::unique_ptr<Client>> {
    Client::Impl& first = *client.impl_;
    GMB_RETURN_IF_ERROR(first.session->CheckAlive());
    if (!options.tenant_token.empty() ||
        !IsSocketDirOf(*first.session, options.socket_dir)) {
      return nullptr;
    }
    auto impl = std::make_unique<Client::Impl>();
    impl->session = first.session;
    impl->devices = first.devices;
    impl->warnings = first.warnings;
    impl->joined = std::make_unique<Joined>(first.session, options.on_trim);
    return std::unique_ptr<Client>(new Client(std::move(impl)));
  });
}

absl::StatusOr<Lease> Client::Attach(const std::string& name,
                                     const AttachOptions& options) {
  return internal::NoThrow([&]() -> absl::StatusOr<Lease> {
    internal::Session& session = *impl_->session;
    GMB_RETURN_IF_ERROR(session.CheckAlive());
    AcquireOptions how;
    how.wait = options.wait;
    how.access_from = options.access_from;
    how.cancel = options.cancel;
    how.on_waiting = options.on_waiting;
    internal::LeaseMapping mapping(
        impl_->mappers.FindOpen(session.welcome(), how.device), 0,
        how.access_from, device::Protection::kRead);
    GMB_ASSIGN_OR_RETURN(
        internal::Granted granted,
        session.leases().Attach(
            name, how, mapping.mapper() == nullptr ? nullptr : &mapping));
    return impl_->Map(std::move(granted), how, mapping);
  });
}

absl::Status Client::Drop(const std::string& name) {
  return internal::NoThrow(
      [&] { return impl_->session->leases().DropShared(name); });
}

absl::StatusOr<Lease> Client::Acquire(uint64_t bytes,
                                      const AcquireOptions& options) {
  return internal::NoThrow([&]() -> absl::StatusOr<Lease> {
    GMB_RETURN_IF_ERROR(impl_->session->CheckAlive());
    return impl_->Acquire(
        impl_->mappers.FindOpen(impl_->session->welcome(), options.device),
        bytes, options);
  });
}

absl::StatusOr<std::shared_ptr<device::Mapper>> Client::Impl::MapperBy(
    const internal::RangeHooks& hooks, const std::string& device) {
  GMB_RETURN_IF_ERROR(session->CheckAlive());
  GMB_ASSIGN_OR_RETURN(std::shared_ptr<device::Mapper> mapper,
                       mappers.Get(session->welcome(), device));
  if (mapper->info().kind != device::DeviceKind::kVmm) {
    return absl::FailedPreconditionError(
        "gmb: only leases of vmm devices are mapped by their holder");
  }
  return std::make_shared<internal::HookedMapper>(std::move(mapper), hooks);
}

absl::StatusOr<Lease> internal::AcquireUnmapped(const Client& client,
                                                uint64_t bytes,
                                                const AcquireOptions& options,
                                                uint64_t asked,
                                                const RangeHooks& hooks) {
  return NoThrow([&]() -> absl::StatusOr<Lease> {
    Client::Impl& impl = *client.impl_;
    GMB_ASSIGN_OR_RETURN(std::shared_ptr<device::Mapper> mapper,
                         impl.MapperBy(hooks, options.device));
    return impl.Acquire(std::move(mapper), bytes, options, asked);
  });
}

absl::StatusOr<Lease> internal::AttachExported(const Client& client,
                                               const ExportedLease& exported,
                                               const std::string& device,
                                               const RangeHooks& hooks) {
  return NoThrow([&]() -> absl::StatusOr<Lease> {
    Client::Impl& impl = *client.impl_;
    GMB_ASSIGN_OR_RETURN(std::shared_ptr<device::Mapper> mapper,
                         impl.MapperBy(hooks, device));
    AcquireOptions how;
    how.device = device;
    LeaseMapping mapping(std::move(mapper), 0, how.access_from,
                         device::Protection::kReadWrite);
    const std::string key(exported.key.begin(), exported.key.end());
    GMB_ASSIGN_OR_RETURN(Granted granted,
                         impl.session->leases().AttachExported(
                             exported.lease_id, key, &mapping));
    return impl.Map(std::move(granted), how, mapping);
  });
}

std::vector<uint64_t> internal::AskAhead(const Client& client, uint64_t bytes,
                                         const AcquireOptions& options,
                                         size_t count) {
  return SessionOf(client).leases().AskAhead(bytes, options, count);
}

absl::StatusOr<std::vector<Lease>> internal::AcquireWithMore(
    const Client& client, uint64_t bytes, const AcquireOptions& options,
    size_t ahead) {
  return NoThrow([&]() -> absl::StatusOr<std::vector<Lease>> {
    Client::Impl& impl = *client.impl_;
    LeaseCalls& calls = impl.session->leases();
    GMB_RETURN_IF_ERROR(impl.session->CheckAlive());
    GMB_ASSIGN_OR_RETURN(const std::vector<uint64_t> all,
                         calls.AskWithMore(bytes, options, ahead));
    std::vector<Lease> leases;
    absl::Status first;
    for (const uint64_t asked : all) {
      if (!first.ok()) {
        calls.ForgetAhead(asked);
        continue;
      }
      absl::StatusOr<Lease> lease = impl.Acquire(
          impl.mappers.FindOpen(impl.session->welcome(), options.device), bytes,
          options, asked);
      if (lease.ok()) {
        leases.push_back(*std::move(lease));
      } else if (leases.empty()) {
        first = lease.status();
      }
    }
    if (!first.ok()) return first;
    return leases;
  });
}

void internal::ForgetAhead(const Client& client, uint64_t asked) {
  SessionOf(client).leases().ForgetAhead(asked);
}

absl::StatusOr<std::vector<QuotaView>> Client::GetQuota() {
  return internal::NoThrow([&]() -> absl::StatusOr<std::vector<QuotaView>> {
    GMB_RETURN_IF_ERROR(impl_->session->CheckAlive());
    return impl_->session->GetQuota();
  });
}

absl::Status Client::TurnGateOn(const GateOptions& options) {
  return internal::NoThrow([&] {
    return impl_->joined != nullptr ? impl_->joined->TurnGateOn()
                                    : impl_->session->gate_switch().TurnOn(
                                          options.park_after, options.group);
  });
}

absl::Status Client::TurnGateOff(absl::Duration wait) {
  return internal::NoThrow([&] {
    return impl_->joined != nullptr
               ? impl_->joined->TurnGateOff(wait)
               : impl_->session->gate_switch().TurnOff(wait);
  });
}

absl::StatusOr<Scope> Client::Enter(absl::Duration wait) {
  internal::Gate& gate = impl_->session->gate();
  GMB_RETURN_IF_ERROR(internal::NoThrow([&] { return gate.Enter(wait); }));
  return Scope(&gate);
}

absl::StatusOr<Scope> Client::EnterCapture(absl::Duration wait) {
  internal::Gate& gate = impl_->session->gate();
  GMB_RETURN_IF_ERROR(
      internal::NoThrow([&] { return gate.EnterCapture(wait); }));
  return Scope(&gate);
}

void Scope::LeaveGate(internal::Gate* gate) noexcept { gate->Leave(); }

internal::Gate& internal::GateOf(const Client& client) {
  return client.impl_->session->gate();
}

internal::Session& internal::SessionOf(const Client& client) {
  return *client.impl_->session;
}

absl::Status Client::SetTrimmable(const std::string& device, uint64_t bytes) {
  return internal::NoThrow([&] {
    return impl_->joined != nullptr
               ? impl_->joined->SetTrimmable(device, bytes)
               : impl_->session->trims().SetTrimmable(device, bytes);
  });
}

absl::Status Client::status() const {
  return internal::NoThrow([&] { return impl_->session->CheckAlive(); });
}

const std::string& Client::tenant() const {
  return impl_->session->welcome().tenant();
}
uint64_t Client::session_id() const {
  return impl_->session->welcome().session_id();
}
uint64_t Client::host_pool_bytes() const {
  return impl_->session->welcome().host_pool_bytes();
}
const std::string& Client::broker_version() const {
  return impl_->session->welcome().broker_version();
}
const std::vector<Device>& Client::devices() const { return impl_->devices; }
const std::vector<std::string>& Client::warnings() const {
  return impl_->warnings;
}

}  // namespace gmb
