#include "tests/client/gate/biased_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::internal::biased {
namespace {

using ipc::GateState;
using ipc::GateWord;

constexpr const char* kCallNames[] = {
    "out",         "marked",       "looked",         "calling",
    "submitted",   "count-loaded", "counted",        "met-closing",
    "in-ordinary", "slow-calling", "slow-submitted", "slow-counted",
    "slow-left"};
constexpr const char* kIdlerNames[] = {
    "rest",  "fence-early", "drain", "note", "record",     "poll", "close",
    "fence", "look",        "leave", "sync", "look-again", "park"};
constexpr const char* kUserNames[] = {"out", "in", "submitted", "counted",
                                      "left"};
constexpr const char* kWordNames[] = {"OPEN", "SYNC", "PARKED", "CLOSED"};

// Appends numbers to a key, and takes them off again: both ways are one
// function, so that they cannot differ.
class Packer {
 public:
  explicit Packer(uint64_t key, bool take) : key_(key), take_(take) {}

  template <typename T>
  void Field(T& value, int bits, int offset = 0) {
    if (take_) {
      const uint64_t mask = (uint64_t{1} << bits) - 1;
      value = static_cast<T>(static_cast<int>(key_ >> at_ & mask) - offset);
    } else {
      key_ |= static_cast<uint64_t>(static_cast<int>(value) + offset) << at_;
    }
    at_ += bits;
  }
  [[nodiscard]] uint64_t key() const { return key_; }

 private:
  uint64_t key_;
  const bool take_;
  int at_ = 0;
};

uint64_t Pack(State& state, uint64_t key, bool take) {
  Packer packer(key, take);
  for (Thread& thread : state.threads) {
    packer.Field(thread.call, 4);
    packer.Field(thread.marked, 1);
    packer.Field(thread.listed, 1);
    for (Store& store : thread.stores) packer.Field(store, 2);
    packer.Field(thread.count, 2);
  }
  packer.Field(state.threads[0].inner, 4);
  packer.Field(state.threads[0].loaded, 3, 4);
  packer.Field(state.user, 3);
  packer.Field(state.scopes_left, 1);
  packer.Field(state.idler, 4);
  packer.Field(state.pausing, 1);
  packer.Field(state.look, 2);
  packer.Field(state.slots_seen, 2);
  auto word = static_cast<uint8_t>(state.word.bits() & 0x3f);
  packer.Field(word, 6);
  state.word = GateWord(word);
  packer.Field(state.standing, 1);
  packer.Field(state.closing, 1);
  packer.Field(state.gpu_old, 1);
  packer.Field(state.gpu_new, 1);
  packer.Field(state.event_lost, 1);
  packer.Field(state.capture, 1);
  packer.Field(state.dead, 1);
  packer.Field(state.over, 1);
  return packer.key();
}

// A word that nobody looks at before it is written again makes no difference.
void Normalise(State& state) {
  const Idler idler = state.idler;
  if (idler <= Idler::kNote || idler > Idler::kLook) {
    for (Thread& thread : state.threads) {
      thread.loaded =
          static_cast<int8_t>(std::max(thread.loaded - thread.count, -4));
      thread.count = 0;
    }
  }
  if (idler <= Idler::kNote || idler == Idler::kPark) {
    state.scopes_left = false;
  }
  for (Thread& thread : state.threads) {
    if (thread.call != Call::kCountLoaded) thread.loaded = 0;
  }
  if (idler != Idler::kLook) state.look = 0;
  if (idler == Idler::kRest || idler > Idler::kPoll) state.pausing = false;
  if (idler != Idler::kPoll) {
    state.event_lost = false;
    state.gpu_new = state.gpu_new || state.gpu_old;
    state.gpu_old = false;
  }
}

bool UserIsIn(const State& state) {
  return state.user != User::kOut && state.user != User::kLeft;
}

bool Touches(Call call) {
  return call == Call::kCalling || call == Call::kSlowCalling;
}

}  // namespace

int MarkOf(Call call) {
  switch (call) {
    case Call::kMarked:
    case Call::kLooked:
      return 1;
    case Call::kCalling:
    case Call::kSubmitted:
    case Call::kCountLoaded:
    case Call::kCounted:
      return 2;
    default:
      return 0;
  }
}

bool InOrdinary(Call call) {
  return call >= Call::kInOrdinary && call <= Call::kSlowCounted;
}

uint64_t Encode(const State& state) {
  State copy = state;
  Normalise(copy);
  return Pack(copy, 0, false);
}

State Decode(uint64_t key) {
  State state;
  Pack(state, key, true);
  return state;
}

const char* Fault(const State& state) {
  int scopes = (state.standing ? 1 : 0) + (UserIsIn(state) ? 1 : 0);
  for (const Thread& thread : state.threads) {
    if (InOrdinary(thread.call) || InOrdinary(thread.inner)) ++scopes;
  }
  if (state.word.scopes() != static_cast<uint32_t>(scopes)) return "miscounts";
  if (!state.closing && !state.standing) {
    return "open to calls without the standing scope";
  }
  if (state.word.state() != GateState::kParked &&
      state.word.state() != GateState::kClosed) {
    return nullptr;
  }
  if (state.gpu_old || state.gpu_new) return "the GPU works on parked memory";
  if (state.capture) return "parked over a capture";
  for (const Thread& thread : state.threads) {
    if (Touches(thread.call) || Touches(thread.inner)) {
      return "a call touches parked memory";
    }
  }
  if (UserIsIn(state)) return "a scope is in behind a parked gate";
  return nullptr;
}

std::string Describe(const State& state) {
  std::string text = absl::StrCat(
      kWordNames[static_cast<int>(state.word.state())], "(",
      state.word.scopes(), state.word.paused() ? ", pause)" : ")",
      state.standing ? " standing" : "", state.closing ? " closing" : "",
      " idler ", kIdlerNames[static_cast<int>(state.idler)],
      state.gpu_old ? " gpu-old" : "", state.gpu_new ? " gpu-new" : "",
      state.event_lost ? " event-lost" : "", state.capture ? " capture" : "",
      state.over ? " over" : (state.dead ? " dead" : ""), " | user ",
      kUserNames[static_cast<int>(state.user)]);
  for (const Thread& thread : state.threads) {
    absl::StrAppend(&text, " | ", kCallNames[static_cast<int>(thread.call)],
                    " > ", kCallNames[static_cast<int>(thread.inner)],
                    thread.marked ? " marked" : "", " ", thread.count);
    for (const Store store : thread.stores) {
      if (store == Store::kMark) absl::StrAppend(&text, " +mark");
      if (store == Store::kUnmark) absl::StrAppend(&text, " +unmark");
      if (store == Store::kCount) absl::StrAppend(&text, " +count");
    }
  }
  return text;
}

const char* Name(Broken broken) {
  static constexpr const char* kNames[] = {
      "nothing",
      "a caller does not mark",
      "a caller does not look at closing",
      "a caller clears closing and goes on",
      "a caller marks while it waits",
      "a caller does not enter the ordinary gate",
      "a caller leaves the standing scope out",
      "a caller clears closing under a pause",
      "a caller leaves before the call",
      "a caller does not count",
      "a caller counts before the call",
      "a caller unmarks before it counts",
      "counting is two steps",
      "an inner call unmarks",
      "an inner call trusts a mark",
      "an inner call unmarks while it waits",
      "scopes do not count",
      "scopes count after leaving",
      "captures do not enter",
      "records during captures",
      "notes after recording",
      "does not record",
      "does not poll",
      "polls through pauses",
      "takes a lost event for done",
      "does not close",
      "does not fence",
      "fences before closing",
      "lists slots before the fence",
      "does not look at marks",
      "does not look at counts",
      "looks at counts before marks",
      "leaves without closing",
      "does not leave",
      "syncs over scopes",
      "does not look again",
      "parks over scopes",
      "gives up by clearing closing",
      "gives up with the standing scope out",
      "does not end",
      "leaves after the end"};
  static_assert(std::size(kNames) == static_cast<size_t>(Broken::kEnd));
  return kNames[static_cast<size_t>(broken)];
}

}  // namespace gmb::internal::biased
