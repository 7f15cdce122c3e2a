#ifndef GMB_CLIENT_PRELOAD_PROGRAM_GATE_H_
#define GMB_CLIENT_PRELOAD_PROGRAM_GATE_H_

#include <atomic>

#include "base/cancels_later.h"
#include "client/gate/bias_calls.h"

namespace gmb::preload {

class Contexts;

// The program's gate: each call that touches device memory goes through it, and
// while none does the memory may be lent. There is one from the first session
// on; before that the program has no memory of ours. Thread-safe.
class ProgramGate {
 public:
  // In a session that was opened for it, before its first lease. A later
  // session's memory is not lent. `contexts` lives as long as the process.
  static void Begin(gmb_client* client, Contexts* contexts);

  // Null before the first session, or when nothing is to be lent.
  [[nodiscard]] static const internal::BiasCalls* Get() {
    return calls.load(std::memory_order_seq_cst);  // on x86 as acquire
  }

  // From now on nothing is lent; also said before there is a gate. `why` is kept.
  // Does nothing with --park=force.
  static void NeverPark(const char* why);

  // The same, and the memory is there from here on. False: it will not come back.
  [[nodiscard]] static bool EndLending(const char* why);

  // The process is one of so many ranks that wait for each other: it is parked
  // with them, by a group of that name, or never. Also said before there is a
  // gate. `group` is kept.
  static void JoinRanks(const char* group, unsigned ranks);

  // One lease more, or less, is mapped by another process, or is another's:
  // while there is one no pause is heeded, since others may wait on the GPU for
  // what this process does with it.
  static void Share(int change) { shared.fetch_add(change); }

  // Whether the broker has the memory, or has lost it.
  [[nodiscard]] static bool IsAway() {
    const internal::BiasCalls* const gate = Get();
    return gate != nullptr && gate->is_away();
  }

  // The process exits.
  static void Stop();

 private:
  static inline constinit std::atomic<const internal::BiasCalls*> calls{
      nullptr};
  static inline constinit std::atomic<int> shared{0};
};

// One call of the driver, in the gate for as long as it lives.
class GatedCall {
 public:
  // Waits while the memory is away.
  GatedCall() : gate_(ProgramGate::Get()) {
    if (gate_ == nullptr) return;
    slot_ = gate_->slot();
    in_ = slot_ != nullptr &&
          (internal::MarkAndLook(*slot_, *gate_->flags, was_) || EnterSlowly());
  }
  ~GatedCall() {
    if (slot_ == nullptr || !in_) return;
    internal::CountAndUnmark(*slot_, was_);
    if (ordinary_) [[unlikely]]
      gate_->leave_ordinary();
  }
  GatedCall(const GatedCall&) = delete;
  GatedCall& operator=(const GatedCall&) = delete;

  // False: the memory will not come back, and nothing may touch it.
  [[nodiscard]] bool in() const { return in_; }

 private:
  bool EnterSlowly() {
    const base::CancelsLater cancels_later;
    return gate_->enter_slowly(slot_, was_, &ordinary_);
  }

  const internal::BiasCalls* const gate_;
  internal::BiasSlot* slot_ = nullptr;
  uint32_t was_ = 0;
  bool in_ = true;
  bool ordinary_ = false;
};

// The answer to a call that may not come in: a CUresult.
[[nodiscard]] int MemoryIsAway();

// A call that only asks the driver about memory: in the gate where that costs no
// wait, so that nothing is unmapped meanwhile. It gives the GPU no work, and
// does not count as activity.
class GatedLook {
 public:
  GatedLook() {
    const internal::BiasCalls* const gate = ProgramGate::Get();
    if (gate == nullptr) return;
    slot_ = gate->slot();
    in_ = slot_ != nullptr &&
          (internal::MarkAndLook(*slot_, *gate->flags, was_) ||
           internal::FenceAndLook(*slot_, *gate->flags));
    if (!in_ && slot_ != nullptr) internal::Unmark(*slot_, was_);
  }
  ~GatedLook() {
    if (in_ && slot_ != nullptr) internal::Unmark(*slot_, was_);
  }
  GatedLook(const GatedLook&) = delete;
  GatedLook& operator=(const GatedLook&) = delete;

  // False: the memory may be away.
  [[nodiscard]] bool in() const { return in_; }

 private:
  internal::BiasSlot* slot_ = nullptr;
  uint32_t was_ = 0;
  bool in_ = true;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_PROGRAM_GATE_H_
