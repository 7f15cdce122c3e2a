#ifndef GMB_TESTS_CLIENT_GATE_GATE_MODEL_H_
#define GMB_TESTS_CLIENT_GATE_GATE_MODEL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/gate/enter_step.h"
#include "ipc/gate_word.h"

// The whole gate as a machine of small steps: three threads of a client, its
// parker, its GPU, and a broker, in any interleaving. The words are changed by
// the functions that the product uses; only the order of their calls is written
// down a second time here, from client/gate/gate.cc and parker.cc.
//
// A look at the word and the compare-and-swap that follows from it are one
// step: if the word was changed in between the swap fails and nothing happened,
// and if it is the same word again the decision would be the same.
namespace gmb::internal::model {

inline constexpr int kThreads = 3;

// Where a thread is. "Capture": its innermost scope is a capture's.
enum class Thread : uint8_t {
  kOut,
  kEntering,
  kImpatient,  // entering, and its patience with SYNC is over
  kEnteringCapture,
  kRestoring,
  kRestoringCapture,
  kWaking,           // in, and about to wake the parker
  kWakingCapture,    // the same on the way to kAwaiting
  kAwaiting,         // in, for a capture that may not begin yet
  kIn,               // one scope
  kInCapture,        // one scope, a capture's
  kNested,           // two scopes
  kNestedAwaiting,   // one scope, waits to begin a capture in it
  kNestedCapture,    // two scopes, the inner one a capture's
  kNestedInCapture,  // two scopes, the outer one a capture's
};

enum class Parker : uint8_t {
  kAwake,     // looks at the word, now or when its timer ends
  kAsleep,    // until it is woken
  kFlagged,   // has said that it will synchronise
  kCalling,   // SYNC is written; the devices are being synchronised
  kReturned,  // they are quiet
  kFailed,    // they could not be asked
  kEnding,    // quiet, and the flag is down
  kEndingFailed,
};

enum class Broker : uint8_t {
  kIdle,
  kPausing,
  kClosed,    // the gate is closed; contents are being copied
  kEvicted,   // the client has no memory mapped
  kRestored,  // it has again; the gate is about to be reopened
  kDead,
  kBack,  // a new process; has looked at nothing yet
};

enum class Copy : uint8_t { kNone, kMaking, kMade };

struct State {
  std::array<Thread, kThreads> threads{};
  std::array<bool, kThreads> stopped{};
  ipc::GateWord word = ipc::kGateOff;
  bool off = true;  // the program has not turned the gate on yet
  Parker parker = Parker::kAwake;
  bool gpu_old = false;  // work from before the last SYNC
  bool gpu_new = false;  // work from after it
  Broker broker = Broker::kIdle;
  bool journal_host = false;  // what the journal says: the contents are here
  Copy copy = Copy::kNone;    // made ahead, while the gate was parked
  uint64_t copy_epoch = 0;
  bool changed = false;  // the memory may differ from what the copy read

  [[nodiscard]] int ScopesIn() const;
  [[nodiscard]] bool GpuBusy() const { return gpu_old || gpu_new; }
  [[nodiscard]] std::string Describe() const;
};

bool InScope(Thread thread);
bool InCapture(Thread thread);
bool Entering(Thread thread);  // wants in, and is not

// Equal keys: states with the same future, but for the order of the threads
// and the numbers of the epochs.
uint64_t Encode(const State& state);
State Decode(uint64_t key);

enum class Actor : uint8_t { kThread, kParker, kGpu, kBroker };

struct Step {
  Actor actor;
  const char* name;
  State to;
  // Something goes wrong, or a deadline passes.
  bool fault = false;
  // Somebody starts something, which nobody has to do.
  bool fresh = false;
};

// The rules under test. The defaults are the product's; a test that replaces
// one shows that the explorer finds what that rule is for.
struct Rules {
  EnterStep (*next_enter_step)(ipc::GateWord, bool, bool) = NextEnterStep;
  std::optional<ipc::GateWord> (*after_leave)(ipc::GateWord) = ipc::AfterLeave;
  std::optional<ipc::GateWord> (*after_sync_begin)(ipc::GateWord) =
      ipc::AfterSyncBegin;
  std::optional<ipc::GateWord> (*after_sync_end)(ipc::GateWord,
                                                 bool) = ipc::AfterSyncEnd;
  std::optional<ipc::GateWord> (*after_close)(ipc::GateWord) = ipc::AfterClose;
  std::optional<ipc::GateWord> (*after_reopen)(ipc::GateWord) =
      ipc::AfterReopen;
  bool (*copy_is_true)(ipc::GateWord, uint64_t) = ipc::CopyIsTrue;
  bool captures_await = true;  // Parker::AwaitNoSynchronize
  bool enter_wakes = true;     // Parker::Wake after PARKED -> OPEN
  bool parker_waits = true;    // for the GPU
  bool back_withdraws = true;  // a new broker ends the pauses it finds
  bool back_reads_journal = true;
};

// All steps that can be taken in `from`.
std::vector<Step> Steps(const Rules& rules, const State& from);

// Nothing if `state` is safe, otherwise what is wrong.
std::optional<std::string> Fault(const Rules& rules, const State& state);
// The same for a step: who may change what.
std::optional<std::string> Fault(const State& from, const Step& step);

}  // namespace gmb::internal::model

#endif  // GMB_TESTS_CLIENT_GATE_GATE_MODEL_H_
