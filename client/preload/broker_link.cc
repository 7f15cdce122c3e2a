// `gmb run`: the process's session, and its leases.
#include "client/preload/broker_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "client/preload/find_symbol.h"
#include "client/preload/library_error.h"
#include "client/preload/process_life.h"
#include "client/preload/program_gate.h"
#include "client/preload/say.h"
#include "client/preload/settings.h"

namespace gmb::preload {
namespace {

constexpr auto kBetweenTries = std::chrono::seconds(1);
constexpr size_t kMostDevices = 64;

const BrokerLibrary& Library() { return *BrokerLibrary::Get(); }

// Once, when the process first needs the broker.
void SayNotUnderstood() {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  for (const std::string& line : TheSettings().not_understood) SayAlways(line);
}

// Empty without a file. Nothing, which is said, when there is none in it:
// without a token this process would be another tenant. The broker says what is
// wrong with one.
std::optional<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return "";
  std::array<char, 512> buffer{};
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t bytes = read(file.get(), buffer.data(), buffer.size());
  std::string token(buffer.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) {
    token.pop_back();
  }
  if (!token.empty()) return token;
  Say("cannot read the tenant's token file, or it is empty: " + path);
  return std::nullopt;
}

}  // namespace

class BrokerLink::Session {
 public:
  Session(gmb_client* client, uint64_t number)
      : client_(client), number_(number) {
    std::array<gmb_device, kMostDevices> devices{};
    size_t count = 0;
    const LibraryError error(Library().gmb_client_devices(
        client, devices.data(), sizeof(gmb_device), devices.size(), &count));
    count = std::min(count, devices.size());
    devices_.assign(devices.begin(), devices.begin() + count);
  }
  // Leases that are still held stay valid.
  ~Session() { Library().gmb_client_close(client_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] gmb_client* client() const { return client_; }
  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] bool Offers(const std::string& device) const {
    return Find(device) != nullptr;
  }
  [[nodiscard]] bool OffersUnmapped(const std::string& device) const {
    const gmb_device* const found = Find(device);
    return found != nullptr && found->kind == GMB_DEVICE_VMM;
  }
  [[nodiscard]] bool Lives() const {
    const LibraryError error(Library().gmb_client_status(client_));
    if (!error.ok()) Say("the session is over: " + error.message());
    return error.ok();
  }

 private:
  [[nodiscard]] const gmb_device* Find(const std::string& device) const {
    const auto found = std::find_if(
        devices_.begin(), devices_.end(),
        [&device](const gmb_device& one) { return device == one.uuid; });
    return found == devices_.end() ? nullptr : &*found;
  }

  gmb_client* const client_;
  const uint64_t number_;
  std::vector<gmb_device> devices_;
};

Outcome BrokerLink::Connect(std::shared_ptr<Session>* session) {
  NoteUse();
  // Closed when the lock is not held any more: that waits for on_trim_, which
  // may wait for the lock.
  std::shared_ptr<Session> over;
  const base::MutexLock lock(&mu_);
  if (session_ != nullptr && session_->Lives()) {
    *session = session_;
    return Outcome::kDone;
  }
  over = std::exchange(session_, nullptr);
  SayNotUnderstood();
  if (BrokerLibrary::Get() == nullptr) return Outcome::kNoBroker;
  if (std::chrono::steady_clock::now() < next_try_) return last_try_;
  const std::optional<std::string> token = ReadToken(TheSettings().token_file);
  if (!token.has_value()) {
    next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
    last_try_ = Outcome::kTurnedAway;  // as a broker would without it
    return last_try_;
  }
  gmb_client_options options;
  Library().gmb_client_options_init(&options, sizeof(options));
  options.tenant_token = token->data();
  options.tenant_token_bytes = token->size();
  options.automatic_gate = TheSettings().park == Settings::Park::kOff ? 0 : 1;
  options.on_trim = [](const char* device, uint64_t bytes, int64_t,
                       void* link) {
    static_cast<BrokerLink*>(link)->on_trim_(device, bytes);
  };
  options.user = this;
  gmb_client* client = nullptr;
  const LibraryError error(Library().gmb_client_connect(&options, &client));
  if (!error.ok()) {
    Say(error.message());
    next_try_ = std::chrono::steady_clock::now() + kBetweenTries;
    last_try_ = error.AsOutcome(Outcome::kTurnedAway);
    return last_try_;
  }
  session_ = std::make_shared<Session>(client, ++sessions_);
  *session = session_;
  Say(std::string("connected as tenant ") +
      Library().gmb_client_tenant(client));
  ProgramGate::Begin(client, contexts_);
  return Outcome::kDone;
}

Outcome BrokerLink::Acquire(const std::string& device,
                            const std::vector<std::string>& peers,
                            uint64_t bytes, int64_t wait_ms,
                            LeaseRange* lease) {
  return Acquire(device, peers, bytes, wait_ms, nullptr, nullptr, lease);
}

Outcome BrokerLink::AcquireUnmapped(const std::string& device, uint64_t bytes,
                                    int64_t wait_ms,
                                    const internal::RangeHooks& hooks,
                                    const LeaseRange* asked,
                                    LeaseRange* lease) {
  return Acquire(device, {}, bytes, wait_ms, &hooks, asked, lease);
}

std::vector<LeaseRange> BrokerLink::AskAhead(const std::string& device,
                                             uint64_t bytes, size_t count) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  if (Connect(&session) != Outcome::kDone || !session->OffersUnmapped(device))
    return {};
  gmb_acquire_options options;
  Library().gmb_acquire_options_init(&options, sizeof(options));
  options.device = device.c_str();
  std::vector<LeaseRange> asked;
  asked.reserve(count);
  std::vector<uint64_t> numbers(count);
  numbers.resize(Library().gmb_internal_ask_ahead(
      session->client(), bytes, &options, numbers.data(), count));
  for (const uint64_t number : numbers) {
    asked.push_back(
        {.bytes = bytes, .session = session->number(), .asked = number});
  }
  return asked;
}

// With its session the broker has taken it back.
void BrokerLink::Forget(const LeaseRange& asked) {
  const RealSymbolsHere real;
  if (const std::shared_ptr<Session> session = Current(asked.session))
    Library().gmb_internal_forget_ahead(session->client(), asked.asked);
}

std::shared_ptr<BrokerLink::Session> BrokerLink::Current(uint64_t number) {
  const base::MutexLock lock(&mu_);
  return session_ != nullptr && session_->number() == number ? session_
                                                             : nullptr;
}

Outcome BrokerLink::OffersUnmapped(const std::string& device) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  if (const Outcome connected = Connect(&session); connected != Outcome::kDone)
    return connected;
  return session->OffersUnmapped(device) ? Outcome::kDone
                                         : Outcome::kNotOffered;
}

Outcome BrokerLink::Acquire(const std::string& device,
                            const std::vector<std::string>& peers,
                            uint64_t bytes, int64_t wait_ms,
                            const internal::RangeHooks* hooks,
                            const LeaseRange* asked, LeaseRange* lease) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  if (const Outcome connected = Connect(&session); connected != Outcome::kDone)
    return connected;
  if (hooks == nullptr ? !session->Offers(device)
                       : !session->OffersUnmapped(device)) {
    return Outcome::kNotOffered;
  }
  if (asked != nullptr && asked->session != session->number())
    return Outcome::kNoMemory;
  gmb_acquire_options options;
  Library().gmb_acquire_options_init(&options, sizeof(options));
  options.device = device.c_str();
  options.wait_ms = wait_ms;
  std::vector<const char*> access;
  if (session->OffersUnmapped(device)) {
    for (const std::string& peer : peers) access.push_back(peer.c_str());
  }
  options.access_from = access.data();
  options.access_from_count = access.size();
  gmb_lease* handle = nullptr;
  const LibraryError error(
      hooks == nullptr
          ? Library().gmb_acquire(session->client(), bytes, &options, &handle)
          : Library().gmb_internal_acquire_unmapped(
                session->client(), bytes, &options,
                asked == nullptr ? 0 : asked->asked, hooks, &handle));
  if (!error.ok()) {
    if (asked != nullptr) return Outcome::kNoMemory;
    Say(MebibytesText(bytes) + " refused: " + error.message());
    return error.AsOutcome(error.Is(GMB_REASON_NONE) ? Outcome::kNotMapped
                                                     : Outcome::kNoMemory);
  }
  *lease = {
      .handle = handle,
      .start = reinterpret_cast<uint64_t>(Library().gmb_lease_data(handle)),
      .bytes = Library().gmb_lease_size_bytes(handle),
      .session = session->number()};
  return Outcome::kDone;
}

Outcome BrokerLink::Export(const LeaseRange& lease,
                           internal::ExportedLease* exported, int* slab_fd) {
  const RealSymbolsHere real;
  const std::shared_ptr<Session> session = Current(lease.session);
  if (session == nullptr) return Outcome::kNoBroker;
  const LibraryError error(Library().gmb_internal_export(
      session->client(), lease.handle, exported, slab_fd));
  if (error.ok()) return Outcome::kDone;
  SayAlways("memory is not shared with another process: " + error.message());
  return error.AsOutcome(error.Is(GMB_REASON_OVERCOMMITTED)
                             ? Outcome::kNoMemory
                             : Outcome::kNotOffered);
}

Outcome BrokerLink::AttachExported(const std::string& device,
                                   const internal::ExportedLease& exported,
                                   const internal::RangeHooks& hooks,
                                   LeaseRange* lease) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  if (const Outcome connected = Connect(&session); connected != Outcome::kDone)
    return connected;
  if (!session->OffersUnmapped(device)) return Outcome::kNotOffered;
  gmb_lease* handle = nullptr;
  const LibraryError error(Library().gmb_internal_attach_exported(
      session->client(), &exported, device.c_str(), &hooks, &handle));
  if (!error.ok()) {
    SayAlways("memory of another process is not mapped: " + error.message());
    return error.AsOutcome(Outcome::kNotOffered);
  }
  *lease = {.handle = handle,
            .bytes = Library().gmb_lease_size_bytes(handle),
            .session = session->number(),
            .shared = true};
  ProgramGate::Share(1);
  return Outcome::kDone;
}

Outcome BrokerLink::Ask(const std::string& device, Budget* budget) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  if (const Outcome connected = Connect(&session); connected != Outcome::kDone)
    return connected;
  std::array<gmb_quota, kMostDevices> quotas{};
  size_t count = 0;
  const LibraryError error(
      Library().gmb_client_quota(session->client(), quotas.data(),
                                 sizeof(gmb_quota), quotas.size(), &count));
  if (!error.ok()) {
    Say("the broker did not say the budget: " + error.message());
    return Outcome::kNoBroker;
  }
  const auto end = quotas.begin() + std::min(count, quotas.size());
  const auto quota = std::find_if(
      quotas.begin(), end,
      [&device](const gmb_quota& one) { return device == one.device; });
  if (quota == end) return Outcome::kNotOffered;
  budget->total_bytes = std::min(quota->limit_bytes, quota->pool_bytes);
  budget->free_bytes = std::min(quota->obtainable_bytes, budget->total_bytes);
  budget->leased_bytes = quota->leased_bytes;
  return Outcome::kDone;
}

bool BrokerLink::Lives(const LeaseRange& lease) {
  const RealSymbolsHere real;
  const base::MutexLock lock(&mu_);
  return session_ != nullptr && session_->number() == lease.session &&
         session_->Lives();
}

gmb_error* BrokerLink::Join(const gmb_client_options& options,
                            gmb_client** joined) {
  const RealSymbolsHere real;
  *joined = nullptr;
  std::shared_ptr<Session> session;
  if (Connect(&session) != Outcome::kDone) return nullptr;
  return Library().gmb_internal_join(session->client(), &options, joined);
}

void BrokerLink::SetTrimmable(const std::string& device, uint64_t bytes) {
  const RealSymbolsHere real;
  std::shared_ptr<Session> session;
  {
    const base::MutexLock lock(&mu_);
    session = session_;
  }
  if (session == nullptr) return;
  // Of a session that is over nothing is asked either.
  const LibraryError ignored(
      Library().gmb_set_trimmable(session->client(), device.c_str(), bytes));
}

void BrokerLink::Release(const LeaseRange& lease) {
  const RealSymbolsHere real;
  if (lease.shared) ProgramGate::Share(-1);
  const LibraryError error(Library().gmb_internal_release_idle(lease.handle));
  if (!error.ok()) Say("a lease was not released in order: " + error.message());
}

void BrokerLink::ReleaseSoon(const LeaseRange& lease) {
  const RealSymbolsHere real;
  if (lease.shared) ProgramGate::Share(-1);
  Library().gmb_lease_release_soon(lease.handle);
}

}  // namespace gmb::preload
