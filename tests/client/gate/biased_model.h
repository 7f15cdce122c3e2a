#ifndef GMB_TESTS_CLIENT_GATE_BIASED_MODEL_H_
#define GMB_TESTS_CLIENT_GATE_BIASED_MODEL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/gate_word.h"

// The biased gate as a machine of small steps: callers that mark a slot without
// a locked instruction, a second user of the ordinary gate, the idler, the GPU
// with its event, and a broker that pauses, closes and dies. The word is
// changed by the functions that the product uses. A caller's stores wait in a
// buffer of its processor until they are flushed, in order.
//
// A look at the word and the compare-and-swap that follows from it are one step
// here, as in gate_model.h.
namespace gmb::internal::biased {

inline constexpr int kSlots = 2;
inline constexpr int kStores = 3;

// Where a call is.
enum class Call : uint8_t {
  kOut,
  kMarked,   // the mark is stored
  kLooked,   // `closing` was not set; the mark does not say so yet
  kCalling,  // let in: may touch memory
  kSubmitted,
  kCountLoaded,  // a broken rule alone: counting is a load and a store
  kCounted,
  kMetClosing,  // the mark is as it was before the call
  kInOrdinary,  // has an ordinary scope; `closing` may still be set
  kSlowCalling,
  kSlowSubmitted,
  kSlowCounted,
  kSlowLeft,  // a broken rule alone: the mark of the call around it is not back
};

enum class Store : uint8_t { kNone, kMark, kUnmark, kCount };

// A thread: its call, and one inside of it (in a signal handler, or because the
// driver calls itself through us), which may begin between any two steps.
struct Thread {
  Call call = Call::kOut;
  Call inner = Call::kOut;
  bool marked = false;  // as other processors see it
  bool listed = true;   // the slot is where the idler can find it
  std::array<Store, kStores> stores{};
  int8_t count = 0;   // less what the idler noted; as others see it; at most 3
  int8_t loaded = 0;  // the same of a count that is about to be stored
};

enum class User : uint8_t {
  kOut,
  kIn,
  kSubmitted,
  kCounted,
  kLeft,  // a broken rule alone: out, and not counted yet
};

// The next step of the idler.
enum class Idler : uint8_t {
  kRest,
  kFenceEarly,  // these two under a pause alone
  kDrain,
  kNote,
  kRecord,
  kPoll,
  kClose,
  kFence,
  kLook,
  kLeave,
  kSync,
  kLookAgain,
  kPark,
};

struct State {
  std::array<Thread, kSlots> threads{};
  User user = User::kOut;
  bool scopes_left = false;  // an ordinary scope, since the idler noted
  Idler idler = Idler::kRest;
  bool pausing = false;    // it began under a pause
  uint8_t look = 0;        // how far in kLook
  uint8_t slots_seen = 0;  // a broken rule alone: listed when the idler began
  ipc::GateWord word{ipc::GateState::kOpen, 1, 0};  // the epoch stays 0
  bool standing = true;
  bool closing = false;
  bool gpu_old = false;  // work from before the event
  bool gpu_new = false;
  bool event_lost = false;  // its context was reset
  bool capture = false;
  bool dead = false;  // the broker
  bool over = false;  // and the process has noticed
};

struct Step {
  const char* name;
  State to;
  const char* fault = nullptr;  // of the step itself
  bool fresh = false;     // somebody starts something, or something goes wrong
  bool withdraw = false;  // the broker ends a pause
  bool of_user = false;   // the second user's
  bool of_gpu = false;
};

// The threads that are there. Each world is explored by itself.
struct World {
  const char* name;
  int callers = 1;
  int stores = kStores;   // that a processor holds back, at most kStores
  bool inside = false;    // the first caller has calls inside of calls
  bool user = false;      // gmb.torch beside the preload
  bool captures = false;  // the first caller begins some
  bool pauses = false;
  bool dies = false;
  bool resets = false;       // of the context that the event is in
  bool late_thread = false;  // the last caller's slot is new
};

// One line of the protocol that is left out or changed.
enum class Broken : uint8_t {
  kNothing,
  // A caller.
  kCallerDoesNotMark,
  kCallerDoesNotLook,
  kCallerClearsClosingAndGoesOn,
  kCallerMarksWhileItWaits,
  kCallerDoesNotEnter,
  kCallerLeavesTheStandingScopeOut,
  kCallerClearsClosingUnderAPause,
  kCallerLeavesBeforeTheCall,
  kCallerDoesNotCount,
  kCallerCountsBeforeTheCall,
  kCallerUnmarksBeforeItCounts,
  kCountingIsTwoSteps,
  kInnerUnmarks,
  kInnerTrustsAMark,
  kInnerUnmarksWhileItWaits,
  // Ordinary scopes.
  kScopesDoNotCount,
  kScopesCountAfterLeaving,
  // Captures.
  kCapturesDoNotEnter,
  kRecordsDuringCaptures,
  // The idler.
  kNotesAfterRecording,
  kDoesNotRecord,
  kDoesNotPoll,
  kPollsThroughPauses,
  kTakesALostEventForDone,
  kDoesNotClose,
  kDoesNotFence,
  kFencesBeforeClosing,
  kListsSlotsBeforeTheFence,
  kDoesNotLookAtMarks,
  kDoesNotLookAtCounts,
  kLooksAtCountsBeforeMarks,
  kLeavesWithoutClosing,
  kDoesNotLeave,
  kSyncsOverScopes,
  kDoesNotLookAgain,
  kParksOverScopes,
  kGivesUpByClearingClosing,
  kGivesUpWithTheStandingScopeOut,
  // The session's end.
  kDoesNotEnd,
  kLeavesAfterTheEnd,
  kEnd,
};
const char* Name(Broken broken);

// All steps that can be taken in `from`, in `*steps`.
void Steps(const World& world, Broken broken, const State& from,
           std::vector<Step>* steps);

// Nothing if `state` is safe, otherwise what is wrong.
const char* Fault(const State& state);

// Equal keys: states with the same future.
uint64_t Encode(const State& state);
State Decode(uint64_t key);

std::string Describe(const State& state);

// The meaning of a thread's mark to a call inside of it: 0 out, 1 marked, 2 let
// in.
int MarkOf(Call call);
bool InOrdinary(Call call);

}  // namespace gmb::internal::biased

#endif  // GMB_TESTS_CLIENT_GATE_BIASED_MODEL_H_
