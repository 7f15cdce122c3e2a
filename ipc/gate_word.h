#ifndef GMB_IPC_GATE_WORD_H_
#define GMB_IPC_GATE_WORD_H_

#include <cstdint>
#include <optional>

namespace gmb::ipc {

// The gate: one 64-bit word, with which a session's process and the broker
// agree on the use of the session's memory. Both can change it. docs/gate.md
// has the whole of it. Pure: this file knows words, not their pages.
enum class GateState : uint8_t {
  kOpen = 0,    // scopes may be in, and the GPU may be at work
  kSync = 1,    // no scope is in; the parker waits for the GPU
  kParked = 2,  // no scope is in, the GPU is quiet; the broker may close
  kClosed = 3,  // the memory is the broker's
};

// Any 64 bits are a word, so that garbage in the page needs no special case.
// Zero is OPEN with no scope: what the broker lets alone.
class GateWord {
 public:
  static constexpr uint32_t kMaxScopes = (uint32_t{1} << 21) - 1;
  static constexpr uint64_t kMaxEpoch = (uint64_t{1} << 40) - 1;
  static constexpr uint64_t kPauseBit = 4;

  constexpr GateWord() = default;
  constexpr explicit GateWord(uint64_t bits) : bits_(bits) {}
  // The epoch wraps; `scopes` is at most kMaxScopes.
  constexpr GateWord(GateState state, uint32_t scopes, uint64_t epoch,
                     bool paused = false)
      : bits_(static_cast<uint64_t>(state) | (paused ? kPauseBit : 0) |
              uint64_t{scopes} << 3 | epoch << 24) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr GateState state() const {
    return static_cast<GateState>(bits_ & 3);
  }
  // No new scope is let in until the broker says otherwise.
  [[nodiscard]] constexpr bool paused() const {
    return (bits_ & kPauseBit) != 0;
  }
  // Outermost scopes that are in, of all threads.
  [[nodiscard]] constexpr uint32_t scopes() const {
    return static_cast<uint32_t>(bits_ >> 3) & kMaxScopes;
  }
  // Grows with every scope that is the first one in.
  [[nodiscard]] constexpr uint64_t epoch() const { return bits_ >> 24; }

  // A client that follows the rules has no scope in but in OPEN.
  [[nodiscard]] constexpr bool consistent() const {
    return state() == GateState::kOpen || scopes() == 0;
  }
  [[nodiscard]] constexpr bool parked() const {
    return state() == GateState::kParked && scopes() == 0;
  }

  friend constexpr bool operator==(GateWord a, GateWord b) {
    return a.bits_ == b.bits_;
  }

 private:
  uint64_t bits_ = 0;
};

// The word of a new page: active until the program turns its gate on.
inline constexpr GateWord kGateOff(GateState::kOpen, 1, 0);

// The moves. Each maps the word that was seen to the word to put in its place
// by one compare-and-swap, or to nothing where the move is not allowed.

// Client, any thread: a scope comes in.
constexpr std::optional<GateWord> AfterEnter(GateWord word) {
  if (word.paused() || word.scopes() == GateWord::kMaxScopes ||
      (word.state() != GateState::kOpen && !word.parked())) {
    return std::nullopt;
  }
  return GateWord(GateState::kOpen, word.scopes() + 1,
                  word.epoch() + (word.scopes() == 0 ? 1 : 0));
}

// Client, any thread: a scope comes in although the parker still waits for the
// GPU, whose park then fails.
constexpr std::optional<GateWord> AfterTakeBack(GateWord word) {
  if (word.paused() || word.state() != GateState::kSync || word.scopes() != 0) {
    return std::nullopt;
  }
  return GateWord(GateState::kOpen, 1, word.epoch() + 1);
}

// Client, any thread: a scope goes out.
constexpr std::optional<GateWord> AfterLeave(GateWord word) {
  if (word.state() != GateState::kOpen || word.scopes() == 0) {
    return std::nullopt;
  }
  return GateWord(GateState::kOpen, word.scopes() - 1, word.epoch(),
                  word.paused());
}

// Client, the parker: it is about to wait for the GPU.
constexpr std::optional<GateWord> AfterSyncBegin(GateWord word) {
  if (word.state() != GateState::kOpen || word.scopes() != 0) {
    return std::nullopt;
  }
  return GateWord(GateState::kSync, 0, word.epoch(), word.paused());
}

// Client, the parker: the GPU is quiet, or could not be asked. Not allowed
// when a scope took the gate back.
constexpr std::optional<GateWord> AfterSyncEnd(GateWord word, bool quiet) {
  if (word.state() != GateState::kSync || word.scopes() != 0) {
    return std::nullopt;
  }
  return GateWord(quiet ? GateState::kParked : GateState::kOpen, 0,
                  word.epoch(), word.paused());
}

// Broker: the memory becomes its own. A pause has then done its work.
constexpr std::optional<GateWord> AfterClose(GateWord word) {
  if (!word.parked()) return std::nullopt;
  return GateWord(GateState::kClosed, 0, word.epoch());
}

// Broker: the memory is back, with the bytes it had.
constexpr std::optional<GateWord> AfterReopen(GateWord word) {
  if (word.state() != GateState::kClosed || word.scopes() != 0) {
    return std::nullopt;
  }
  return GateWord(GateState::kParked, 0, word.epoch());
}

// Broker, in any state: no new scope comes in; or may come in again.
constexpr GateWord AfterPause(GateWord word) {
  return GateWord(word.bits() | GateWord::kPauseBit);
}
constexpr GateWord AfterWithdraw(GateWord word) {
  return GateWord(word.bits() & ~GateWord::kPauseBit);
}

// Whether a copy of the memory that was made while the gate was parked in
// `epoch` is what the memory holds, seen the word after the copy's end.
constexpr bool CopyIsTrue(GateWord word, uint64_t epoch) {
  return word.epoch() == epoch && word.scopes() == 0 &&
         (word.state() == GateState::kParked ||
          word.state() == GateState::kClosed);
}

}  // namespace gmb::ipc

#endif  // GMB_IPC_GATE_WORD_H_
