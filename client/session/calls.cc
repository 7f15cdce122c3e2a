// A thread that waits for the answer to its request: how it sleeps, wakes and
// gives up.
#include "client/session/calls.h"

#include <algorithm>
#include <memory>
#include <stop_token>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "client/no_throw.h"
#include "proto/utf8_check.h"

namespace gmb::internal {
namespace {

// How long a call keeps its seat: nobody else reads meanwhile, so a thread that
// is stopped there stops them.
constexpr std::chrono::seconds kMostSitting{1};
// How long a withdrawn request waits for the broker to confirm.
constexpr absl::Duration kCancelPatience = absl::Seconds(1);

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

// A broker ends the stream that has a longer one (docs/protocol.md), and it
// would be said again on the next. Only names make one long.
constexpr size_t kMostMessageBytes = 8'000;

// The broker ends the session of a client that sends anything else.
absl::Status CheckSendable(const v1::ClientMessage& message) {
  if (const absl::Status text = proto::CheckUtf8(message); !text.ok())
    return absl::InvalidArgumentError(absl::StrCat("gmb: ", text.message()));
  if (message.ByteSizeLong() <= kMostMessageBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "gmb: the names in this call are too long: a request has at most ",
      kMostMessageBytes, " bytes, and this one ", message.ByteSizeLong()));
}

absl::StatusOr<Granted> LeaseIn(absl::StatusOr<Answer> answer) {
  if (!answer.ok()) return answer.status();
  return std::get<Granted>(*std::move(answer));
}

void Withdraw(uint64_t id, RequestTable* table) {
  v1::ClientMessage message;
  message.mutable_cancel()->set_acquire_request_id(id);
  table->AddUnwatched(std::move(message));
}

// Clamped, so that sums stay far from the clock's end.
std::chrono::nanoseconds AsNanoseconds(absl::Duration duration) {
  return absl::ToChronoNanoseconds(
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365)));
}

}  // namespace

// A call that waits for an answer: at the sockets itself, so that no other
// thread has to wake it.
struct Calls::Call {
  uint64_t id = 0;
  Clock::time_point deadline;
  bool restore = false;
  const AcquireOptions* lease = nullptr;  // of an Acquire or Attach
  EarlyMapping* early = nullptr;
  std::optional<Seats::Seat> seat{};
  ipc::Wakeup* at_socket = nullptr;  // of the seat
  Arrivals arrivals{};
  bool mapped = false;  // `early` has the slabs
  bool cancelled = false;
  Clock::time_point stands_up{};    // at the latest
  Clock::time_point began{};        // to wait
  Clock::time_point polls_until{};  // and sleeps from then on
  bool heard = false;               // anything since
  // Outlives the call, so that a thread which has woken it may say so late.
  std::shared_ptr<base::CondVar> changed = std::make_shared<base::CondVar>();

  void Wake() {
    if (at_socket != nullptr) at_socket->Notify();
    changed->NotifyAll();
  }

  // Without a seat it is woken by the thread that reads. `mu`: what guards the
  // call.
  void SitDown(Seats* seats, base::Mutex* mu) {
    seat.emplace(seats);
    stands_up = Clock::now() + kMostSitting;
    base::MutexLock lock(mu);
    at_socket = seat->wakeup();
  }
  // From now on others read what it waits for.
  void StandUp(base::Mutex* mu) {
    {
      base::MutexLock lock(mu);
      at_socket = nullptr;
    }
    seat.reset();
  }
};

// The next step of a call that waits.
struct Calls::Step {
  std::optional<absl::StatusOr<Answer>> result;
  std::optional<uint64_t> ahead;
  std::optional<EarlySlabs> slabs;
  bool given_up = false;  // its deadline has passed
  bool undo = false;
  bool poke = false;
};

Calls::Calls(absl::Duration answer_timeout, StreamChannel* stream,
             HandleChannel* handles, Seats* seats)
    : answer_timeout_(answer_timeout),
      stream_(*stream),
      handles_(*handles),
      seats_(*seats) {}

absl::Status Calls::CheckAlive() const {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  base::MutexLock lock(&mu_);
  return over_;
}

absl::StatusOr<Answer> Calls::Ask(v1::ClientMessage message) {
  return AskWithin(std::move(message), answer_timeout_);
}

absl::StatusOr<Answer> Calls::AskWithin(v1::ClientMessage message,
                                        absl::Duration patience) {
  return AskUntil(std::move(message), Clock::now() + AsNanoseconds(patience));
}

absl::StatusOr<Answer> Calls::AskUntil(v1::ClientMessage message,
                                       Clock::time_point deadline) {
  Call call{.deadline = deadline, .restore = message.has_restore()};
  return Wait(std::move(message), call);
}

absl::StatusOr<Granted> Calls::AskForLease(v1::ClientMessage message,
                                           const AcquireOptions& options,
                                           absl::Duration wait,
                                           EarlyMapping* early,
                                           Arrivals* arrivals) {
  Call call{.deadline = Clock::now() + AsNanoseconds(wait + answer_timeout_),
            .lease = &options,
            .early = early};
  absl::StatusOr<Answer> answer = Wait(std::move(message), call);
  if (arrivals != nullptr) *arrivals = call.arrivals;
  return LeaseIn(std::move(answer));
}

absl::StatusOr<uint64_t> Calls::AskAhead(v1::ClientMessage message) {
  GMB_RETURN_IF_ERROR(CheckSendable(message));
  base::MutexLock lock(&mu_);
  if (!over_.ok()) return over_;
  const uint64_t id = table_.AddRequest(std::move(message));
  deadlines_[id] = Clock::now() + AsNanoseconds(answer_timeout_);
  return id;
}

absl::StatusOr<Granted> Calls::TakeLease(uint64_t asked,
                                         const AcquireOptions& options,
                                         EarlyMapping* early) {
  Call call{.id = asked, .deadline = {}, .lease = &options, .early = early};
  {
    base::MutexLock lock(&mu_);
    call.deadline = deadlines_[asked];
    deadlines_.erase(asked);
    waiting_.emplace(call.id, &call);
  }
  return LeaseIn(AwaitAnswer(call));
}

absl::Status Calls::Queue(v1::ClientMessage message) {
  GMB_RETURN_IF_ERROR(CheckSendable(message));
  base::MutexLock lock(&mu_);
  if (!over_.ok()) return over_;
  table_.AddUnwatched(std::move(message));
  return absl::OkStatus();
}

void Calls::Send(v1::ClientMessage message) {
  if (Queue(std::move(message)).ok()) stream_.Poke();
}

void Calls::SendSoon(v1::ClientMessage message) {
  if (Queue(std::move(message)).ok()) stream_.PokeSoon();
}

void Calls::End(const absl::Status& why) {
  {
    base::MutexLock lock(&mu_);
    if (!over_.ok()) return;
    over_ = SessionOver(why);
    for (const auto& [id, call] : waiting_) call->Wake();
  }
  stream_.Close();
}

absl::Status Calls::OnAnswer(v1::BrokerMessage message, uint64_t reader) {
  const uint64_t id = message.request_id();
  std::shared_ptr<base::CondVar> woken;
  {
    base::MutexLock lock(&mu_);
    GMB_RETURN_IF_ERROR(table_.OnMessage(std::move(message)));
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return absl::OkStatus();
    Call& call = *found->second;
    call.arrivals.grant = Clock::now();
    // A grant without its slabs: they wake who waits for both.
    if (!table_.HasNews(id)) return absl::OkStatus();
    if (id == reader) return absl::OkStatus();  // it looks next
    if (call.at_socket != nullptr) call.at_socket->Notify();
    woken = call.changed;
  }
  woken->NotifyAll();  // without the lock, which it would wait for
  return absl::OkStatus();
}

absl::Status Calls::OnSlabs(const v1::Slabs& slabs,
                            std::vector<base::UniqueFd> fds, uint64_t reader) {
  const uint64_t id = slabs.request_id();
  base::MutexLock lock(&mu_);
  GMB_RETURN_IF_ERROR(table_.OnSlabs(slabs, std::move(fds)));
  if (const auto call = waiting_.find(id); call != waiting_.end()) {
    call->second->arrivals.slabs = Clock::now();
    if (id != reader) call->second->Wake();
  }
  return absl::OkStatus();
}

std::optional<v1::ClientMessage> Calls::NextToWrite() {
  base::MutexLock lock(&mu_);
  const v1::ClientMessage* const next = table_.NextToWrite();
  if (next == nullptr) return std::nullopt;
  return *next;
}

void Calls::Rewind() {
  base::MutexLock lock(&mu_);
  table_.Rewind();
}

bool Calls::IsAwaited() {
  base::MutexLock lock(&mu_);
  return !waiting_.empty();
}

absl::StatusOr<Answer> Calls::Wait(v1::ClientMessage message, Call& call) {
  GMB_RETURN_IF_ERROR(CheckSendable(message));
  {
    base::MutexLock lock(&mu_);
    if (!over_.ok()) return over_;
    call.id = table_.AddRequest(std::move(message));
    waiting_.emplace(call.id, &call);
  }
  stream_.Poke();
  return AwaitAnswer(call);
}

absl::StatusOr<Answer> Calls::AwaitAnswer(Call& call) {
  const std::stop_callback on_cancel(
      call.lease == nullptr ? std::stop_token() : call.lease->cancel,
      [this, &call] {
        base::MutexLock lock(&mu_);
        call.Wake();
      });
  // A handler may end the thread: nobody is to wake this call then.
  const absl::Cleanup unwound = [this, &call] {
    base::MutexLock lock(&mu_);
    if (waiting_.erase(call.id) > 0) table_.Abandon(call.id);
  };
  if (call.early != nullptr) call.early->Prepare();
  call.began = Clock::now();
  call.polls_until = call.began + busy_wait_.Length();
  call.SitDown(&seats_, &mu_);
  for (;;) {
    Step step = NextStep(call);
    if (step.result.has_value()) return *std::move(step.result);
    if (step.given_up) {
      absl::Status why = NoAnswer(call);
      stream_.Poke();
      return why;
    }
    Carry(call, step);
  }
}

void Calls::Carry(Call& call, Step& step) {
  if (step.poke) {
    stream_.Poke();
  } else if (step.slabs.has_value()) {
    call.StandUp(&mu_);
    // The early mapping was of a lease that will not be granted.
    if (call.mapped) call.early->Undo();
    call.early->Map(*std::move(step.slabs));
    call.mapped = true;
  } else if (step.undo) {
    call.early->Undo();
    call.mapped = false;
  } else if (step.ahead.has_value()) {
    if (call.lease->on_waiting != nullptr) {
      call.StandUp(&mu_);
      CallAndDropExceptions(call.lease->on_waiting, *step.ahead);
    }
  } else if (call.at_socket != nullptr) {
    WaitAtSocket(call);
  }
}

void Calls::WaitAtSocket(Call& call) {
  const bool came = seats_.Wait(call.at_socket, call.polls_until,
                                std::min(call.deadline, call.stands_up));
  if (!std::exchange(call.heard, true))
    busy_wait_.Answered(Clock::now() - call.began);
  if (!came) {
    if (Clock::now() >= call.stands_up) call.StandUp(&mu_);
    return;
  }
  const absl::Status status = NoThrow([&] {
    GMB_RETURN_IF_ERROR(handles_.Receive(call.id));
    stream_.Receive(call.id);
    return absl::OkStatus();
  });
  if (!status.ok()) End(status);
}

Calls::Step Calls::NextStep(Call& call) {
  base::MutexLock lock(&mu_);
  for (;;) {
    Step step;
    if ((step.result = table_.TakeAnswer(call.id)).has_value()) {
      // Answered.
    } else if (call.mapped && (!over_.ok() || Clock::now() >= call.deadline)) {
      step.undo = true;  // before the lease is given back
      return step;
    } else if (!over_.ok()) {
      table_.Abandon(call.id);  // closes slabs that came
      step.result = over_;
    } else if ((step.ahead = table_.TakeAhead(call.id)).has_value() ||
               (call.early != nullptr &&
                (step.slabs = table_.TakeSlabs(call.id)).has_value())) {
      return step;
    } else if (call.lease != nullptr && !call.cancelled &&
               call.lease->cancel.stop_requested()) {
      Withdraw(call.id, &table_);
      call.cancelled = true;
      call.deadline = std::min(call.deadline,
                               Clock::now() + AsNanoseconds(kCancelPatience));
      step.poke = true;
      return step;
    } else if (Clock::now() >= call.deadline) {
      if (call.lease != nullptr && !call.cancelled) Withdraw(call.id, &table_);
      table_.Abandon(call.id);
      step.given_up = true;
    }
    if (step.result.has_value() || step.given_up) {
      waiting_.erase(call.id);
      return step;
    }
    if (call.at_socket != nullptr) return step;
    call.changed->WaitUntil(&mu_, call.deadline);
  }
}

absl::Status Calls::NoAnswer(const Call& call) const {
  if (call.cancelled) {
    return absl::CancelledError(
        "gmb: the request was withdrawn; the broker has not confirmed it yet");
  }
  const absl::Status unreachable = stream_.error();
  if (call.restore) {
    return absl::DeadlineExceededError(absl::StrCat(
        "gmb: the session's memory did not come back in time; wait longer, or "
        "look at `gmb why`",
        unreachable.ok() ? "" : "; the broker cannot be reached: ",
        unreachable.message()));
  }
  if (!unreachable.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "gmb: the broker could not be reached at ", stream_.dir_name(),
        " in time: it is away and may be started again, or it hangs, "
        "or "
        "its sockets are crowded; the session lives, try again: ",
        unreachable.message()));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "gmb: the broker at ", stream_.dir_name(),
      " did not answer in time: it is overloaded, or it hangs; the request was "
      "withdrawn and the session lives"));
}

}  // namespace gmb::internal
