// A session's beginning, its thread, and its end.
#include "client/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "client/fork_guard.h"
#include "client/no_throw.h"
#include "client/wire.h"
#include "gmb/error.h"

namespace gmb::internal {
namespace {

// For a session without a gate: scopes are counted, and nobody looks.
absl::StatusOr<ipc::GatePage> LonePage() {
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd fd, ipc::CreateGatePage());
  return ipc::GatePage::Map(fd.get());
}

// A way round streams of packets, should they ever be what is wrong.
bool WantsGrpc() {
  const char* const stream = std::getenv("GMB_STREAM");
  return stream != nullptr && absl::string_view(stream) == "grpc";
}

absl::Status ExplainGreeting(const absl::Status& failed, const SocketDir& dir) {
  if (GetErrorDetail(failed).has_value()) return failed;
  // To be there later is what may be waited for; this may not.
  GMB_RETURN_IF_ERROR(CheckTenantIsThere(dir.name()));
  return absl::Status(failed.code(),
                      absl::StrCat("gmb: no greeting from a broker at ",
                                   dir.name(), ": ", failed.message()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> Session::Open(
    const ClientOptions& options, std::shared_ptr<Notifier> notifier,
    std::shared_ptr<TrimHook> trim_hook) {
  const base::Deadline deadline(options.connect_timeout);
  const base::Deadline gives_up(std::min(options.connect_timeout, kNextBroker));
  GMB_RETURN_IF_ERROR(ForkGuard::CheckFreshStart());
  absl::Status ended;  // of a session whose broker died before it began
  for (;;) {
    GMB_ASSIGN_OR_RETURN(SocketDir dir, SocketDir::Open(options.socket_dir));
    absl::StatusOr<Greeting> greeting =
        Greet(dir.handle_path(), options.program, options.tenant_token,
              deadline.Left());
    if (!greeting.ok()) {
      const bool nobody = absl::IsUnavailable(greeting.status()) &&
                          !GetErrorDetail(greeting.status()).has_value();
      if (nobody && !ended.ok()) return ended;
      return ExplainGreeting(greeting.status(), dir);
    }
    const base::UniqueFd broker = std::move(greeting->broker);
    GMB_ASSIGN_OR_RETURN(SessionWait wait, SessionWait::Create());
    GMB_RETURN_IF_ERROR(wait.AddSocket(greeting->socket.fd()));
    GMB_ASSIGN_OR_RETURN(ipc::GatePage page, greeting->gate.has_value()
                                                 ? *std::move(greeting->gate)
                                                 : LonePage());

    std::shared_ptr<Session> session(
        new Session(options, notifier, trim_hook, std::move(dir),
                    *std::move(greeting), std::move(page), std::move(wait)));
    session->thread_ = std::thread([raw = session.get()] { raw->Run(); });

    v1::ClientMessage probe;
    probe.mutable_get_quota();
    ended =
        session->calls_.AskWithin(std::move(probe), deadline.Left()).status();
    if (ended.ok()) return session;
    // One that no keeper had yet is gone with its broker, and nobody has it.
    if (gives_up.IsOver() || !EndedWithItsBroker(ended, broker, deadline))
      return ended;
  }
}

Session::Session(const ClientOptions& options,
                 std::shared_ptr<Notifier> notifier,
                 std::shared_ptr<TrimHook> trim_hook, SocketDir dir,
                 Greeting greeting, ipc::GatePage page, SessionWait wait)
    : notifier_(std::move(notifier)),
      trim_hook_(std::move(trim_hook)),
      welcome_(std::move(greeting.welcome)),
      socket_dir_(dir.name()),
      wait_(std::move(wait)),
      seats_(&wait_),
      inbox_(&calls_, &mover_, &gate_switch_, trim_hook_.get(),
             notifier_.get()),
      calls_(options.answer_timeout, &stream_, &handles_, &seats_),
      handles_(std::move(greeting.socket), &inbox_),
      stream_(std::move(dir), welcome_.token(),
              greeting.takes_streams && !WantsGrpc(), &calls_, &inbox_, &wait_),
      leases_(&calls_, &mover_),
      trims_(&welcome_, trim_hook_, &calls_),
      mover_(this),
      gate_switch_(std::move(page), greeting.gate.has_value(),
                   options.automatic_gate, &calls_, &mover_) {
  trim_hook_->SetWake([this] { wait_.Notify(); });
}

Session::~Session() {
  trim_hook_->SetWake(nullptr);
  closing_ = true;
  wait_.Notify();
  // It hangs up; from now on nobody opens a stream.
  if (thread_.joinable()) thread_.join();
  stream_.CloseAndWait();
}

void Session::Run() {
  while (!closing_ && calls_.CheckAlive().ok()) {
    const absl::Status status = NoThrow([this] {
      stream_.OpenIfDue();
      stream_.WriteIfDue();
      trims_.Answer();
      std::optional<std::chrono::steady_clock::time_point> next =
          trim_hook_->NextDue();
      if (const auto due = stream_.NextDue(); due.has_value())
        next = std::min(next.value_or(*due), *due);
      wait_.Wait(next);
      GMB_RETURN_IF_ERROR(handles_.Receive(0));
      stream_.Receive(0);
      return absl::OkStatus();
    });
    if (!status.ok()) calls_.End(status);
  }
  HangUp();
}

void Session::HangUp() {
  handles_.HangUp();
  mover_.Clear();
  handles_.Drain();
}

void Session::SendMoved(v1::ClientMessage answer) {
  calls_.Send(std::move(answer));
}

absl::StatusOr<std::vector<QuotaView>> Session::GetQuota() {
  v1::ClientMessage message;
  message.mutable_get_quota();
  GMB_ASSIGN_OR_RETURN(Answer answer, calls_.Ask(std::move(message)));
  const auto& report = std::get<v1::QuotaReport>(answer);
  std::vector<QuotaView> quotas;
  quotas.reserve(static_cast<size_t>(report.quotas_size()));
  std::transform(report.quotas().begin(), report.quotas().end(),
                 std::back_inserter(quotas), QuotaFromWire);
  return quotas;
}

}  // namespace gmb::internal
