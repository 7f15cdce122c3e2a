#ifndef GMB_CLIENT_GATE_ENTER_STEP_H_
#define GMB_CLIENT_GATE_ENTER_STEP_H_

#include <cstdint>
#include <optional>

#include "ipc/gate_word.h"

namespace gmb::internal {

// The next step of a thread that wants in and has seen the word. Pure: the gate
// carries it out, and so does the model in tests/client/gate.
struct EnterStep {
  enum class Kind : uint8_t {
    kMove,     // put `next` in the place of the word that was seen: then in
    kWait,     // the parker waits for the GPU: wait for it, within patience
    kRestore,  // the broker has to help
    kFull,     // more scopes than the word can count
  };
  Kind kind;
  ipc::GateWord next{};
};

// `patience_over`: this thread has waited long enough for the parker. A capture
// never takes the gate back: the parker's call would destroy it.
constexpr EnterStep NextEnterStep(ipc::GateWord word, bool capture,
                                  bool patience_over) {
  using Kind = EnterStep::Kind;
  if (const auto next = ipc::AfterEnter(word)) return {Kind::kMove, *next};
  if (const auto next = ipc::AfterTakeBack(word)) {
    if (capture || !patience_over) return {Kind::kWait};
    return {Kind::kMove, *next};
  }
  const bool full = word.state() == ipc::GateState::kOpen && !word.paused();
  return {full ? Kind::kFull : Kind::kRestore};
}

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_ENTER_STEP_H_
