// Trims: calls heaps and the application's handler, and answers in time.
#include "client/session/trim_hook.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "client/no_throw.h"
#include "client/wire.h"

namespace gmb::internal {
namespace {

constexpr absl::Duration kLongest = absl::Hours(1);

absl::Duration LeftOf(TrimHook::Clock::time_point due) {
  return absl::FromChrono(
      std::max(std::chrono::nanoseconds::zero(),
               std::chrono::nanoseconds(due - TrimHook::Clock::now())));
}

}  // namespace

TrimHook::TrimHook(TrimHandler handler)
    : state_(std::make_shared<State>(std::move(handler))) {
  if (state_->handler == nullptr) return;
  base::MutexLock lock(&thread_mu_);
  thread_ = std::thread([state = state_] { Run(*state); });
}

void TrimHook::AddHeap(const void* heap, HeapTrimmer trimmer) {
  {
    base::MutexLock lock(&state_->mu);
    if (state_->stopping) return;
    state_->heaps.emplace(heap, std::move(trimmer));
  }
  StartThread();
}

void TrimHook::StartThread() {
  base::MutexLock lock(&thread_mu_);
  if (thread_.joinable()) return;
  thread_ = std::thread([state = state_] { Run(*state); });
}

void TrimHook::RemoveHeap(const void* heap) {
  base::MutexLock lock(&state_->mu);
  state_->heaps.erase(heap);
  while (state_->running == heap) state_->changed.Wait(&state_->mu);
}

void TrimHook::AddHandler(const void* client, TrimHandler handler) {
  {
    base::MutexLock lock(&state_->mu);
    if (state_->stopping) return;
    state_->joined.emplace(client, std::move(handler));
  }
  StartThread();
}

void TrimHook::RemoveHandler(const void* client) {
  base::MutexLock lock(&state_->mu);
  state_->joined.erase(client);
  if (state_->thread == std::this_thread::get_id()) return;
  while (state_->running == client) state_->changed.Wait(&state_->mu);
}

void TrimHook::Stop() {
  {
    base::MutexLock lock(&state_->mu);
    state_->stopping = true;
    std::vector<Pending> running;
    for (Pending& pending : state_->pending) {
      if (pending.running) {
        running.push_back(std::move(pending));
      } else if (!pending.answered) {
        state_->answers.push_back({pending.trim, false});
      }
    }
    state_->pending.swap(running);
    state_->changed.NotifyAll();
    state_->Wake();
  }
  const bool joined = [this] {
    base::MutexLock lock(&state_->mu);
    return !state_->joined.empty();
  }();
  base::MutexLock lock(&thread_mu_);
  if (!thread_.joinable()) return;
  if (joined || thread_.get_id() == std::this_thread::get_id()) {
    // Inside the handler: it ends when that returns. So it does where it may be
    // in another client's, which may wait for what the caller holds.
    thread_.detach();
  } else {
    thread_.join();
  }
}

void TrimHook::SetWake(std::function<void()> wake) {
  base::MutexLock lock(&state_->mu);
  state_->wake = std::move(wake);
}

void TrimHook::OnTrim(const v1::Trim& trim, Clock::time_point now) {
  const absl::Duration within =
      std::min(DurationFromWire(trim.within()), kLongest);
  base::MutexLock lock(&state_->mu);
  std::vector<Pending>& pending = state_->pending;
  if (std::any_of(pending.begin(), pending.end(), [&](const Pending& other) {
        return other.trim == trim.trim();
      })) {
    return;  // repeated after a break
  }
  // Called for together with this one.
  std::erase_if(pending, [&](const Pending& other) {
    return other.answered && !other.running && other.device == trim.device();
  });
  if (state_->HasNobody() || state_->stopping) {
    state_->answers.push_back({trim.trim(), false});
  } else if (pending.size() == kMostTrims) {
    state_->answers.push_back({trim.trim(), true});
  } else {
    pending.push_back({trim.trim(), trim.device(), trim.bytes(),
                       now + absl::ToChronoNanoseconds(within)});
    state_->changed.NotifyAll();
  }
  state_->Wake();
}

std::vector<TrimHook::Answer> TrimHook::TakeAnswers(Clock::time_point now) {
  base::MutexLock lock(&state_->mu);
  std::vector<Answer> answers;
  answers.swap(state_->answers);
  for (Pending& pending : state_->pending) {
    if (pending.answered || pending.due > now) continue;
    answers.push_back({pending.trim, true});
    pending.answered = true;
  }
  return answers;
}

std::optional<TrimHook::Clock::time_point> TrimHook::NextDue() const {
  base::MutexLock lock(&state_->mu);
  if (!state_->answers.empty()) return Clock::time_point();
  std::optional<Clock::time_point> next;
  for (const Pending& pending : state_->pending) {
    if (pending.answered) continue;
    next = std::min(next.value_or(pending.due), pending.due);
  }
  return next;
}

void TrimHook::Run(State& state) {
  {
    base::MutexLock lock(&state.mu);
    state.thread = std::this_thread::get_id();
  }
  for (;;) {
    std::optional<Pending> trim;
    {
      base::MutexLock lock(&state.mu);
      while (!state.stopping && !(trim = Begin(state)).has_value()) {
        state.changed.Wait(&state.mu);
      }
      if (state.stopping) return;
    }
    Call(state, *trim);
    base::MutexLock lock(&state.mu);
    AnswerRunning(state);
  }
}

void TrimHook::Call(State& state, const Pending& trim) {
  const uint64_t given = TrimHeaps(state, trim.device, trim.bytes);
  if (given > 0 && given >= trim.bytes) return;
  if (state.handler != nullptr) {
    CallAndDropExceptions(state.handler, trim.device, trim.bytes - given,
                          LeftOf(trim.due));
  }
  CallJoined(state, trim, trim.bytes - given);
}

// How much the others have given nobody says.
void TrimHook::CallJoined(State& state, const Pending& trim, uint64_t bytes) {
  for (const void* last = nullptr;;) {
    TrimHandler handler;
    {
      base::MutexLock lock(&state.mu);
      const auto next = state.joined.upper_bound(last);
      if (next == state.joined.end()) return;
      last = state.running = next->first;
      handler = next->second;
    }
    const absl::Cleanup over =
        [&state] {  // also where the handler's thread ends
          base::MutexLock lock(&state.mu);
          state.running = nullptr;
          state.changed.NotifyAll();
        };
    CallAndDropExceptions(handler, trim.device, bytes, LeftOf(trim.due));
  }
}

uint64_t TrimHook::TrimHeaps(State& state, const std::string& device,
                             uint64_t bytes) {
  uint64_t given = 0;
  const void* last = nullptr;
  while (given < bytes) {
    HeapTrimmer trimmer;
    {
      base::MutexLock lock(&state.mu);
      const auto next = state.heaps.upper_bound(last);
      if (next == state.heaps.end()) break;
      last = state.running = next->first;
      trimmer = next->second;
    }
    given += trimmer(device, bytes - given);
    base::MutexLock lock(&state.mu);
    state.running = nullptr;
    state.changed.NotifyAll();
  }
  return given;
}

std::optional<TrimHook::Pending> TrimHook::Begin(State& state) {
  std::optional<Pending> newest;
  for (Pending& pending : state.pending) {
    if (newest.has_value() && pending.device != newest->device) continue;
    pending.running = true;
    newest = pending;
  }
  return newest;
}

void TrimHook::AnswerRunning(State& state) {
  std::vector<Pending> waiting;
  for (Pending& pending : state.pending) {
    if (pending.running) {
      if (!pending.answered) state.answers.push_back({pending.trim, false});
    } else {
      waiting.push_back(std::move(pending));
    }
  }
  state.pending.swap(waiting);
  state.Wake();
}

}  // namespace gmb::internal
