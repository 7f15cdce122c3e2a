#include "tests/client/gate/gate_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::internal::model {
namespace {

using ipc::GateState;
using ipc::GateWord;

constexpr const char* kThreadNames[] = {"out",
                                        "entering",
                                        "impatient",
                                        "entering-capture",
                                        "restoring",
                                        "restoring-capture",
                                        "waking",
                                        "waking-capture",
                                        "awaiting",
                                        "in",
                                        "in-capture",
                                        "nested",
                                        "nested-awaiting",
                                        "nested-capture",
                                        "nested-in-capture"};
constexpr const char* kWordNames[] = {"OPEN", "SYNC", "PARKED", "CLOSED"};
constexpr const char* kParkerNames[] = {"awake",   "asleep",       "flagged",
                                        "calling", "returned",     "failed",
                                        "ending",  "ending-failed"};
constexpr const char* kBrokerNames[] = {
    "idle", "pausing", "closed", "evicted", "restored", "dead", "back"};

// Appends a number of `bits` bits to a key, and takes it off again.
class Packer {
 public:
  explicit Packer(uint64_t key = 0) : key_(key) {}
  void Put(uint64_t value, int bits) {
    key_ |= value << at_;
    at_ += bits;
  }
  uint64_t Take(int bits) {
    const uint64_t value = key_ & ((uint64_t{1} << bits) - 1);
    key_ >>= bits;
    return value;
  }
  template <typename T>
  T TakeAs(int bits) {
    return static_cast<T>(Take(bits));
  }
  [[nodiscard]] uint64_t key() const { return key_; }

 private:
  uint64_t key_;
  int at_ = 0;
};

}  // namespace

bool InScope(Thread thread) { return thread >= Thread::kWaking; }

bool InCapture(Thread thread) {
  return thread == Thread::kInCapture || thread == Thread::kNestedCapture ||
         thread == Thread::kNestedInCapture;
}

bool Entering(Thread thread) {
  return thread >= Thread::kEntering && thread <= Thread::kRestoringCapture;
}

int State::ScopesIn() const {
  return static_cast<int>(
      std::count_if(threads.begin(), threads.end(), InScope));
}

std::string State::Describe() const {
  std::string text = absl::StrCat(
      kWordNames[static_cast<int>(word.state())], "(", word.scopes(), ", ",
      word.epoch(), word.paused() ? ", pause)" : ")", off ? " off" : "",
      " parker ", kParkerNames[static_cast<int>(parker)], " broker ",
      kBrokerNames[static_cast<int>(broker)], gpu_old ? " gpu-old" : "",
      gpu_new ? " gpu-new" : "", journal_host ? " journal-host" : "");
  if (copy != Copy::kNone) {
    absl::StrAppend(&text, copy == Copy::kMaking ? " copying " : " copy ",
                    copy_epoch, changed ? " changed" : "");
  }
  for (int i = 0; i < kThreads; ++i) {
    absl::StrAppend(&text, " | ", kThreadNames[static_cast<int>(threads[i])],
                    stopped[i] ? " stopped" : "");
  }
  return text;
}

uint64_t Encode(const State& state) {
  // Threads have no names: a state is one of up to six.
  std::array<uint64_t, kThreads> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads[i] = static_cast<uint64_t>(state.threads[i]) << 1 |
                 static_cast<uint64_t>(state.stopped[i]);
  }
  std::sort(threads.begin(), threads.end());
  Packer packer;
  for (const uint64_t thread : threads) packer.Put(thread, 5);
  packer.Put(static_cast<uint64_t>(state.word.state()), 2);
  packer.Put(static_cast<uint64_t>(state.word.paused()), 1);
  packer.Put(state.word.scopes(), 3);
  packer.Put(static_cast<uint64_t>(state.off), 1);
  packer.Put(static_cast<uint64_t>(state.parker), 3);
  packer.Put(static_cast<uint64_t>(state.gpu_old), 1);
  packer.Put(static_cast<uint64_t>(state.gpu_new), 1);
  packer.Put(static_cast<uint64_t>(state.broker), 3);
  packer.Put(static_cast<uint64_t>(state.journal_host), 1);
  packer.Put(static_cast<uint64_t>(state.copy), 2);
  // Epochs are only compared for equality, and one is remembered: the copy's.
  const bool copied = state.copy != Copy::kNone;
  packer.Put(copied && state.copy_epoch == state.word.epoch() ? 1 : 0, 1);
  packer.Put(copied && state.changed ? 1 : 0, 1);
  return packer.key();
}

State Decode(uint64_t key) {
  Packer packer(key);
  State state;
  for (int i = 0; i < kThreads; ++i) {
    state.stopped[i] = packer.Take(1) != 0;
    state.threads[i] = packer.TakeAs<Thread>(4);
  }
  const auto word = packer.TakeAs<GateState>(2);
  const bool paused = packer.Take(1) != 0;
  const auto scopes = static_cast<uint32_t>(packer.Take(3));
  state.word = GateWord(word, scopes, 1, paused);
  state.off = packer.Take(1) != 0;
  state.parker = packer.TakeAs<Parker>(3);
  state.gpu_old = packer.Take(1) != 0;
  state.gpu_new = packer.Take(1) != 0;
  state.broker = packer.TakeAs<Broker>(3);
  state.journal_host = packer.Take(1) != 0;
  state.copy = packer.TakeAs<Copy>(2);
  state.copy_epoch = packer.Take(1);
  state.changed = packer.Take(1) != 0;
  return state;
}

std::optional<std::string> Fault(const Rules& rules, const State& state) {
  const bool in_use = state.ScopesIn() > 0 || state.GpuBusy();
  const GateState word = state.word.state();
  if (static_cast<int>(state.word.scopes()) !=
      state.ScopesIn() + (state.off ? 1 : 0)) {
    return "the word miscounts the scopes";
  }
  if (in_use && (word == GateState::kParked || word == GateState::kClosed)) {
    return "the memory is in use behind a parked or closed gate";
  }
  if (state.journal_host && word != GateState::kClosed) {
    return "the contents are in the host pool and the gate is not closed";
  }
  if (state.copy == Copy::kMade && state.changed &&
      rules.copy_is_true(state.word, state.copy_epoch)) {
    return "a copy that is not true passes for true";
  }
  for (const Thread thread : state.threads) {
    if (InCapture(thread) && state.parker == Parker::kCalling) {
      return "a context is synchronised during a capture";
    }
  }
  return std::nullopt;
}

std::optional<std::string> Fault(const State& from, const Step& step) {
  const GateWord was = from.word;
  const GateWord is = step.to.word;
  if (step.actor == Actor::kBroker) {
    if (is.state() == GateState::kOpen && was.state() != GateState::kOpen) {
      return "the broker writes OPEN";
    }
    if (is.scopes() != was.scopes() || is.epoch() != was.epoch()) {
      return "the broker changes scopes or epoch";
    }
    return std::nullopt;
  }
  if (is.paused() != was.paused()) return "a client changes the pause";
  if ((is.state() == GateState::kClosed) !=
      (was.state() == GateState::kClosed)) {
    return "a client closes, or leaves CLOSED";
  }
  if (was.paused() && is.scopes() > was.scopes()) {
    return "a scope comes in under a pause";
  }
  if (was.state() == GateState::kParked && is.state() == GateState::kOpen &&
      step.actor != Actor::kThread) {
    return "the parker opens a parked gate";
  }
  return std::nullopt;
}

}  // namespace gmb::internal::model
