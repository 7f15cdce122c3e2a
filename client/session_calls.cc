// What a thread does that waits for the answer to its request.
#include <algorithm>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/no_throw.h"
#include "client/session.h"

namespace gmb::internal {
namespace {

// How long a withdrawn request waits for the broker to confirm.
constexpr absl::Duration kCancelPatience = absl::Seconds(1);

}  // namespace

absl::StatusOr<Answer> Session::Ask(v1::ClientMessage message,
                                    absl::Duration patience) {
  Call call{.id = 0, .deadline = Clock::now() + ToNanoseconds(patience)};
  return Ask(std::move(message), call);
}

absl::StatusOr<Answer> Session::Ask(v1::ClientMessage message, Call& call) {
  {
    ipc::MutexLock lock(&mu_);
    if (!over_.ok()) return over_;
    call.id = table_.AddRequest(std::move(message));
    calls_.emplace(call.id, &call);
  }
  PokeStream();
  const std::stop_callback on_cancel(
      call.lease == nullptr ? std::stop_token() : call.lease->cancel,
      [this, &call] {
        ipc::MutexLock lock(&mu_);
        call.Wake();
      });
  if (call.early != nullptr) call.early->Prepare();
  for (;;) {
    Step step = NextStep(call);
    if (step.result.has_value()) {
      if (step.poke) PokeStream();
      return *std::move(step.result);
    }
    Carry(call, step);
  }
}

void Session::Carry(Call& call, Step& step) {
  if (step.poke) {
    PokeStream();
  } else if (step.slabs.has_value()) {
    call.early->Map(*std::move(step.slabs));
    call.mapped = true;
  } else if (step.undo) {
    call.early->Undo();
    call.mapped = false;
  } else if (step.ahead.has_value()) {
    if (call.lease->on_waiting != nullptr)
      CallAndDropExceptions(call.lease->on_waiting, *step.ahead);
  } else if (call.at_socket.has_value()) {
    WaitAtSocket(call);
  }
}

Session::Step Session::NextStep(Call& call) {
  ipc::MutexLock lock(&mu_);
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
      v1::ClientMessage message;
      message.mutable_cancel()->set_acquire_request_id(call.id);
      table_.AddUnwatched(std::move(message));
      call.cancelled = true;
      call.deadline = std::min(call.deadline,
                               Clock::now() + ToNanoseconds(kCancelPatience));
      step.poke = true;
      return step;
    } else if (Clock::now() >= call.deadline) {
      step.result = GiveUp(call);
      step.poke = true;
    }
    if (step.result.has_value()) {
      calls_.erase(call.id);
      return step;
    }
    if (call.at_socket.has_value()) return step;
    call.changed.WaitUntil(&mu_, call.deadline);
  }
}

absl::Status Session::GiveUp(Call& call) {
  if (call.lease != nullptr && !call.cancelled) {
    v1::ClientMessage message;
    message.mutable_cancel()->set_acquire_request_id(call.id);
    table_.AddUnwatched(std::move(message));
  }
  table_.Abandon(call.id);
  if (call.cancelled) {
    return absl::CancelledError(
        "gmb: the request was withdrawn; the broker has not confirmed it yet");
  }
  if (call.restore) {
    return absl::DeadlineExceededError(absl::StrCat(
        "gmb: the session's memory did not come back in time; wait longer, or "
        "look at `gmb why`",
        stream_error_.ok() ? "" : "; the broker cannot be reached: ",
        stream_error_.message()));
  }
  if (!stream_error_.ok()) {
    return absl::UnavailableError(
        absl::StrCat("gmb: the broker could not be reached at ", dir_.name(),
                     "/gmb.sock in time: that socket is crowded, or the broker "
                     "hangs; the session lives, try again: ",
                     stream_error_.message()));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "gmb: the broker at ", dir_.name(),
      " did not answer in time: it is overloaded, or it hangs; the request was "
      "withdrawn and the session lives"));
}

}  // namespace gmb::internal
