#ifndef GMB_TESTS_CLIENT_GATE_BIASED_MODEL_STEPPER_H_
#define GMB_TESTS_CLIENT_GATE_BIASED_MODEL_STEPPER_H_

#include <vector>

#include "tests/client/gate/biased_model.h"

namespace gmb::internal::biased {

// A processor makes its oldest store seen; false when it holds none back.
bool Flush(Thread& thread);
void FlushAll(Thread& thread);

// Moves of the word. False where they are not allowed.
void Write(State& state, ipc::GateWord next);
bool Enter(State& state);
void Leave(State& state);

// One step of everybody, out of one state.
class Stepper {
 public:
  Stepper(const World& world, Broken broken, const State& from,
          std::vector<Step>* steps)
      : world_(world), broken_(broken), from_(from), steps_(*steps) {}

  void Take();

 private:
  [[nodiscard]] bool Is(Broken broken) const { return broken_ == broken; }
  Step& Add(const char* name, const State& to) {
    steps_.push_back({name, to});
    return steps_.back();
  }

  // The thread's processor holds the store back; false when there is no place.
  [[nodiscard]] bool Put(Thread& thread, Store store) const;

  // The calls of thread `i`: the outer one, or the one inside of it.
  void CallStep(int i, bool inner);
  void Begin(int i, bool inner);
  void MarkAnew(int i, bool inner);
  void Submit(int i, bool inner);
  void AfterSubmit(int i, bool inner);
  void Unmark(int i, bool inner);
  void EnterOrdinary(int i, bool inner);
  void PutBiasBack(int i, bool inner);
  void LeaveOrdinary(int i, bool inner);

  void UserStep();

  void IdlerStep();
  void Rest();
  void Note(State& to) const;
  void Record();
  void Poll();
  void Look();
  void LeaveStanding();
  void Sync();
  void LookAgain();
  void Park();
  void GiveUp();

  void Environment();
  void BrokerSteps();

  const World& world_;
  const Broken broken_;
  const State& from_;
  std::vector<Step>& steps_;
};

}  // namespace gmb::internal::biased

#endif  // GMB_TESTS_CLIENT_GATE_BIASED_MODEL_STEPPER_H_
