#include "client/session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/channel.h"
#include "client/greeting.h"
#include "client/wire.h"
#include "gmb/error.h"

namespace gmb::internal {
namespace {

// Nobody waits for a Mapped: it goes with the next message, or after this time.
constexpr std::chrono::milliseconds kMappedDelay{5};
constexpr absl::Duration kMostWait = absl::Hours(1);  // session.proto

// A place at the handle socket. Every frame wakes all who wait there, so there
// are few.
class Seat {
 public:
  explicit Seat(std::atomic<int>* count)
      : count_(count), taken_(count->fetch_add(1) < kSeats) {}
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  ~Seat() { count_->fetch_sub(1); }
  [[nodiscard]] bool taken() const { return taken_; }

 private:
  static constexpr int kSeats = 4;
  std::atomic<int>* const count_;
  const bool taken_;
};

absl::Status SessionOver(const absl::Status& why) {
  const absl::string_view what =
      absl::IsUnavailable(why) ? "the broker hung up" : why.message();
  absl::Status over = absl::UnavailableError(absl::StrCat(
      "gmb: this session is over and the broker has taken its leases back; "
      "memory that is mapped "
      "stays usable until it is released; connect again to go on: ",
      what));
  why.ForEachPayload([&over](absl::string_view url, const absl::Cord& payload) {
    over.SetPayload(url, payload);
  });
  return over;
}

// For a session without a gate: scopes are counted, and nobody looks.
absl::StatusOr<ipc::GatePage> LonePage() {
  const absl::StatusOr<ipc::UniqueFd> fd = ipc::CreateGatePage();
  if (!fd.ok()) return fd.status();
  return ipc::GatePage::Map(fd->get());
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> Session::Open(
    const ClientOptions& options, std::shared_ptr<Notifier> notifier,
    std::shared_ptr<TrimHook> trim_hook) {
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  if (absl::Status fresh = ForkGuard::CheckFreshStart(); !fresh.ok())
    return fresh;
  absl::StatusOr<SocketDir> dir = SocketDir::Open(options.socket_dir);
  if (!dir.ok()) return dir.status();
  absl::StatusOr<Greeting> greeting =
      Greet(dir->handle_path(), options.program, options.tenant_token,
            deadline - absl::Now());
  if (!greeting.ok()) {
    if (GetErrorDetail(greeting.status()).has_value()) return greeting.status();
    return absl::Status(
        greeting.status().code(),
        absl::StrCat("gmb: no greeting from a broker at ", dir->name(), ": ",
                     greeting.status().message()));
  }
  absl::StatusOr<ipc::Wakeup> wakeup = ipc::Wakeup::Create();
  if (!wakeup.ok()) return wakeup.status();
  absl::StatusOr<ipc::GatePage> page =
      greeting->gate.has_value() ? *std::move(greeting->gate) : LonePage();
  if (!page.ok()) return page.status();

  std::shared_ptr<Session> session(new Session(
      options, std::move(notifier), std::move(trim_hook), *std::move(dir),
      *std::move(greeting), *std::move(page), *std::move(wakeup)));
  session->thread_ = std::thread([raw = session.get()] { raw->Run(); });

  v1::ClientMessage probe;
  probe.mutable_get_quota();
  if (absl::StatusOr<Answer> answer =
          session->Ask(std::move(probe), deadline - absl::Now());
      !answer.ok()) {
    return answer.status();
  }
  return session;
}

Session::Session(const ClientOptions& options,
                 std::shared_ptr<Notifier> notifier,
                 std::shared_ptr<TrimHook> trim_hook, SocketDir dir,
                 Greeting greeting, ipc::GatePage page, ipc::Wakeup wakeup)
    : answer_timeout_(options.answer_timeout),
      notifier_(std::move(notifier)),
      trim_hook_(std::move(trim_hook)),
      has_gate_(greeting.gate.has_value()),
      dir_(std::move(dir)),
      welcome_(std::move(greeting.welcome)),
      wakeup_(std::move(wakeup)),
      socket_(std::move(greeting.socket)),
      channel_(MakeChannel(dir_)),
      stub_(v1::SessionService::NewStub(channel_)),
      reopen_at_(Clock::now()),
      mover_(this),
      gate_(std::make_unique<Gate>(std::move(page),
                                   static_cast<GateOwner*>(this))) {
  trim_hook_->SetWake([this] { wakeup_.Notify(); });
}

Session::~Session() {
  trim_hook_->SetWake(nullptr);
  {
    ipc::MutexLock lock(&mu_);
    closing_ = true;
  }
  wakeup_.Notify();
  // It hangs up; from now on nobody opens a stream.
  if (thread_.joinable()) thread_.join();
  CancelStream();
  ipc::MutexLock lock(&mu_);
  while (stream_ != nullptr && !stream_ended_) stream_changed_.Wait(&mu_);
}

absl::Status Session::CheckAlive() const {
  if (absl::Status alive = fork_guard_.Check(); !alive.ok()) return alive;
  ipc::MutexLock lock(&mu_);
  return over_;
}

absl::StatusOr<Granted> Session::Acquire(uint64_t bytes,
                                         const AcquireOptions& options,
                                         EarlyMapping* early,
                                         Arrivals* arrivals) {
  v1::ClientMessage message;
  v1::Acquire& acquire = *message.mutable_acquire();
  const absl::Duration wait =
      std::clamp(options.wait, absl::ZeroDuration(), kMostWait);
  acquire.set_bytes(bytes);
  acquire.set_device(options.device);
  acquire.set_contents(ContentsToWire(options.contents));
  acquire.set_share_as(options.share_as);
  acquire.set_keep(options.keep);
  *acquire.mutable_wait() = DurationToWire(wait);
  return AskForLease(std::move(message), options, wait, early, arrivals);
}

absl::StatusOr<Granted> Session::Attach(const std::string& name,
                                        const AcquireOptions& options,
                                        EarlyMapping* early) {
  v1::ClientMessage message;
  const absl::Duration wait =
      std::clamp(options.wait, absl::ZeroDuration(), kMostWait);
  message.mutable_attach()->set_name(name);
  *message.mutable_attach()->mutable_wait() = DurationToWire(wait);
  return AskForLease(std::move(message), options, wait, early, nullptr);
}

absl::StatusOr<Granted> Session::AskForLease(v1::ClientMessage message,
                                             const AcquireOptions& options,
                                             absl::Duration wait,
                                             EarlyMapping* early,
                                             Arrivals* arrivals) {
  Call call{.id = 0,
            .deadline = Clock::now() + ToNanoseconds(wait + answer_timeout_),
            .lease = &options,
            .early = early};
  // Without a seat, or an fd to spare, it is woken by whoever reads.
  const Seat seat(&at_socket_);
  if (seat.taken()) {
    if (absl::StatusOr<ipc::Wakeup> own = ipc::Wakeup::Create(); own.ok())
      call.at_socket = *std::move(own);
  }
  absl::StatusOr<Answer> answer = Ask(std::move(message), call);
  if (arrivals != nullptr) *arrivals = call.arrivals;
  if (!answer.ok()) return answer.status();
  return std::get<Granted>(*std::move(answer));
}

absl::Status Session::DropShared(const std::string& name) {
  if (absl::Status alive = CheckAlive(); !alive.ok()) return alive;
  v1::ClientMessage message;
  message.mutable_drop()->set_name(name);
  return Ask(std::move(message), answer_timeout_).status();
}

void Session::Mapped(uint64_t lease_id, std::shared_ptr<MappedLease> lease) {
  v1::ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease_id);
  bool wake = false;
  {
    ipc::MutexLock lock(&mu_);
    if (over_.ok()) {
      table_.AddUnwatched(std::move(message));
      wake = !write_at_.has_value();
      if (wake) write_at_ = Clock::now() + kMappedDelay;
    }
  }
  mover_.Add(lease_id, std::move(lease));
  if (wake) wakeup_.Notify();
}

void Session::StopMoving(uint64_t lease_id) { mover_.Remove(lease_id); }

absl::Status Session::Release(uint64_t lease_id) {
  if (!CheckAlive().ok()) return fork_guard_.Check();
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  const absl::Status released =
      Ask(std::move(message), answer_timeout_).status();
  // When the session has ended meanwhile, the broker took the lease back with
  // it.
  return released.ok() || CheckAlive().ok() ? released : absl::OkStatus();
}

void Session::ReleaseLater(uint64_t lease_id) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  Send(std::move(message));
}

void Session::Send(v1::ClientMessage message) {
  {
    ipc::MutexLock lock(&mu_);
    if (!over_.ok()) return;
    table_.AddUnwatched(std::move(message));
  }
  PokeStream();
}

absl::StatusOr<std::vector<QuotaView>> Session::GetQuota() {
  v1::ClientMessage message;
  message.mutable_get_quota();
  absl::StatusOr<Answer> answer = Ask(std::move(message), answer_timeout_);
  if (!answer.ok()) return answer.status();
  const auto& report = std::get<v1::QuotaReport>(*answer);
  std::vector<QuotaView> quotas;
  quotas.reserve(static_cast<size_t>(report.quotas_size()));
  std::transform(report.quotas().begin(), report.quotas().end(),
                 std::back_inserter(quotas), QuotaFromWire);
  return quotas;
}

std::chrono::nanoseconds Session::ToNanoseconds(absl::Duration duration) {
  return absl::ToChronoNanoseconds(
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365)));
}

void Session::End(const absl::Status& why) {
  {
    ipc::MutexLock lock(&mu_);
    if (!over_.ok()) return;
    over_ = SessionOver(why);
    WakeCalls();
  }
  CancelStream();
  wakeup_.Notify();  // the session's thread hangs up
}

void Session::WakeCalls() {
  for (const auto& [id, call] : calls_) call->Wake();
}

}  // namespace gmb::internal
