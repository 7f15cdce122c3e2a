// Functions of a program whose interpreter may end before it.
#include "client/callback_turn.h"

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace gmb::internal {
namespace {

// For the life of the process: a callback may come at any time.
struct Turns {
  base::Mutex mu;
  base::CondVar over;
  bool silenced ABSL_GUARDED_BY(mu) = false;
  int under_way ABSL_GUARDED_BY(mu) = 0;
};

Turns& TheTurns() {
  static Turns& turns = *new Turns;
  return turns;
}

}  // namespace

CallbackTurn::CallbackTurn() {
  Turns& turns = TheTurns();
  const base::MutexLock lock(&turns.mu);
  granted_ = !turns.silenced;
  if (granted_) ++turns.under_way;
}

CallbackTurn::~CallbackTurn() {
  if (!granted_) return;
  Turns& turns = TheTurns();
  const base::MutexLock lock(&turns.mu);
  if (--turns.under_way == 0) turns.over.NotifyAll();
}

bool CallbackTurn::Silence(std::chrono::milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  Turns& turns = TheTurns();
  const base::MutexLock lock(&turns.mu);
  turns.silenced = true;
  while (turns.under_way > 0) {
    if (!turns.over.WaitUntil(&turns.mu, until)) break;
  }
  return turns.under_way == 0;
}

}  // namespace gmb::internal
