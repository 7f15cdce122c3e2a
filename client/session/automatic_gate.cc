// The gate of a program that nobody changed: when it is on, who waits in it,
// and the thread that parks.
#include "client/session/automatic_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/gate/bias_slots.h"
#include "client/gate/signals_blocked.h"
#include "client/no_throw.h"
#include "client/session/gate_switch.h"
#include "gmb/error.h"
#include "ipc/gate_word.h"

namespace gmb::internal {
namespace {

// One Restore asks for so long; then the broker is asked anew.
constexpr absl::Duration kOneWait = absl::Seconds(10);
// Under a pause the bias is opened again soon, where the process is not quiet.
constexpr absl::Duration kPauseWait = absl::Milliseconds(100);
constexpr auto kBetweenTries = std::chrono::milliseconds(100);
constexpr auto kLongestRest = std::chrono::seconds(5);
// So long the GPU may take to say that it is idle.
constexpr auto kWitnessWaits = std::chrono::milliseconds(100);
constexpr auto kWitnessPolls = std::chrono::microseconds(200);
// An event of a GPU with nothing to do has passed before a sleep is over.
constexpr auto kWitnessSpins = std::chrono::microseconds(50);
// So many in a row found it at work: then somebody gives it work past the gate.
constexpr int kBusyWitnesses = 2;
constexpr auto kBetweenBusy = std::chrono::seconds(1);
// So many times park_after a process may hold memory that it never used.
constexpr int kUnusedFor = 20;
// The memory has to be there for the gate to be off.
constexpr absl::Duration kTurnOffWait = absl::Seconds(2);
// An idle rank asks so often whether the others are there.
constexpr auto kBetweenCounts = std::chrono::seconds(2);

// Nothing brings these back.
bool IsFinal(const absl::Status& refused) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(refused);
  return detail.has_value() && detail->reason == ErrorReason::kContentsLost;
}

// A scope comes in at once, without a word to the broker.
bool LetsScopesIn(const ipc::GateCells& cells) {
  const ipc::GateWord word = ipc::LookAtGate(cells);
  return word.state() == ipc::GateState::kOpen && !word.paused();
}

}  // namespace

bool AutomaticGate::GuardedDevices::Record() {
  base::MutexLock lock(&mu_);
  return !stopped_ && devices_.Record();
}

IdlerDevices::Work AutomaticGate::GuardedDevices::Poll() {
  base::MutexLock lock(&mu_);
  return stopped_ ? Work::kLost : devices_.Poll();
}

void AutomaticGate::GuardedDevices::Stop() {
  base::MutexLock lock(&mu_);
  stopped_ = true;
}

AutomaticGate::AutomaticGate(std::shared_ptr<Session> session,
                             IdlerDevices* devices,
                             AutomaticGateOptions options)
    : session_(std::move(session)),
      options_(std::move(options)),
      devices_(devices),
      bias_(&session_->gate().cells(), &session_->gate()),
      idler_(&session_->gate().cells(), &bias_, &devices_, options_.idling),
      group_(options_.group) {}

absl::Status AutomaticGate::Begin() {
  if (absl::Status status = bias_.Begin(); !status.ok()) return status;
  if (!options_.group.empty()) {
    if (absl::Status joined = session_->gate_switch().JoinGroup(options_.group);
        !joined.ok()) {
      session_->gate_switch().SayNeverLends(
          absl::StrCat("its group did not take it: ", joined.message()));
      return joined;
    }
  }
  session_->gate_switch().SetListener([this] { Wake(); });
  session_->SetWitness([this] { return Witness(); });
  // The program's handlers run on its own threads.
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

AutomaticGate::~AutomaticGate() {
  Stop();
  session_->SetWitness(nullptr);
  session_->gate_switch().SetListener(nullptr);
  if (thread_.joinable()) thread_.join();
}

// --- Calls.

bool AutomaticGate::EnterSlowly(BiasSlot& slot, Bias::Entry& entry) {
  const Clock::time_point began = Clock::now();
  bool said = false;
  for (;;) {
    const bool pausing = PausedAndThere();
    const absl::Status status =
        bias_.EnterSlowly(slot, WaitNow(pausing), entry);
    if (status.ok()) return true;
    if (SessionOver()) {
      return bias_.EnterSlowly(slot, absl::ZeroDuration(), entry).ok();
    }
    if (IsFinal(status)) {
      if (!lost_said_.exchange(true))
        options_.say(std::string(status.message()));
      return false;
    }
    if (!pausing && !RestAfter(status, began, said)) return false;
    if (stopped()) return false;
    // The bias may be open again: the way that costs nothing is the first.
    if (MarkAndLook(slot, bias_.flags(), entry.was)) return true;
  }
}

bool AutomaticGate::PausedAndThere() const {
  const ipc::GateWord word = ipc::LookAtGate(session_->gate().cells());
  return word.paused() && word.state() == ipc::GateState::kOpen;
}

// A process that exits does not have its memory brought back.
absl::Duration AutomaticGate::WaitNow(bool pausing) {
  if (stopped()) return absl::ZeroDuration();
  return pausing ? kPauseWait : kOneWait;
}

// The session's end lets calls in for good, where the memory is there.
bool AutomaticGate::SessionOver() {
  if (session_->CheckAlive().ok()) return false;
  if (!bias_.over()) {
    bias_.End();
    options_.say(
        "the session is over: memory that is there stays and is not lent any "
        "more, memory that is away does not come back");
  }
  return true;
}

// False: the process exits.
bool AutomaticGate::RestAfter(const absl::Status& refused,
                              Clock::time_point began, bool& said) {
  const Clock::time_point now = Clock::now();
  if (!said && now - began >= absl::ToChronoNanoseconds(kOneWait)) {
    said = true;
    options_.say(absl::StrCat(
        "waits for its memory to come back since ",
        std::chrono::duration_cast<std::chrono::seconds>(now - began).count(),
        " s; `gmb why` says what is in its way: ", refused.message()));
  }
  std::chrono::nanoseconds rest = kBetweenTries;
  if (const auto detail = GetErrorDetail(refused); detail.has_value()) {
    rest = std::max(rest, absl::ToChronoNanoseconds(detail->retry_after));
  }
  const Clock::time_point until =
      now + std::min<std::chrono::nanoseconds>(rest, kLongestRest);
  base::MutexLock lock(&mu_);
  while (!stopped_ && changed_.WaitUntil(&mu_, until)) {
  }
  return !stopped_;
}

// --- The mover's thread.

// A GPU that many processes share may be away for longer than a witness waits,
// and a capture or the end of a context keeps it from being asked: so one witness
// proves nothing against the process.
absl::Status AutomaticGate::Witness() {
  constexpr char kBusy[] =
      "the GPU was at work on its memory after no call was seen for long";
  const IdlerDevices::Work work =
      never().empty() ? AskDevices() : IdlerDevices::Work::kLost;
  if (stopped()) return absl::OkStatus();
  std::string why = never();
  if (why.empty()) {
    switch (work) {
      case IdlerDevices::Work::kDone:
        busy_witnesses_ = 0;
        return absl::OkStatus();
      case IdlerDevices::Work::kLost:
        why = "the GPU could not be asked whether it is idle";
        break;
      case IdlerDevices::Work::kBusy:
        why = kBusy;
        if (CountBusy() >= kBusyWitnesses && !options_.parks_forced)
          NeverPark(kBusy);
        break;
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("gmb: the memory stays where it is: ", why));
}

// Each lease of one parking has its own: those of one moment are one.
int AutomaticGate::CountBusy() {
  const Clock::time_point now = Clock::now();
  if (busy_witnesses_ == 0 || now - last_busy_ >= kBetweenBusy)
    ++busy_witnesses_;
  last_busy_ = now;
  return busy_witnesses_;
}

// An event that was recorded now has passed in microseconds, or when the GPU
// comes back from another process's turn. kLost: it could not be asked.
IdlerDevices::Work AutomaticGate::AskDevices() {
  const Clock::time_point began = Clock::now();
  IdlerDevices::Work work = IdlerDevices::Work::kLost;
  for (Clock::time_point now = began; now < began + kWitnessWaits;
       now = Clock::now()) {
    // To record is also to look who has come past the gate since.
    if (work != IdlerDevices::Work::kLost || devices_.Record())
      work = devices_.Poll();
    if (work == IdlerDevices::Work::kDone || stopped() || !never().empty())
      break;
    if (now >= began + kWitnessSpins)
      std::this_thread::sleep_for(kWitnessPolls);
  }
  return work;
}

// --- The thread.

void AutomaticGate::Run() {
  Clock::time_point next = Clock::now();
  while (Sleep(next)) {
    const absl::Status status = NoThrow([&] {
      next = StepOrSwitch(Clock::now());
      return absl::OkStatus();
    });
    if (!status.ok()) next = Clock::now() + std::chrono::seconds(1);
  }
}

AutomaticGate::Clock::time_point AutomaticGate::StepOrSwitch(
    Clock::time_point now) {
  if (SessionOver()) {
    const base::MutexLock lock(&mu_);
    wanted_.reset();
    changed_.NotifyAll();
    return Clock::time_point::max();
  }
  if (idler_.never() != nullptr) NeverPark(idler_.never());
  const Clock::time_point latest =
      JoinWanted() ? Clock::time_point::max() : now + kBetweenTries;
  if (const std::string why = never(); !why.empty())
    return std::min(StayOff(why, now), latest);
  const Clock::time_point next = idler_.Step(now);
  if (!on_ && idler_.TakeQuietSeen() && now >= not_on_before_ && MeansIdle(now))
    TurnOn(now);
  if (idler_.pauses_failed() > pauses_failed_) {
    not_on_before_ = idler_.backoff_until();
    owes_turn_off_ = on_;
  }
  pauses_failed_ = idler_.pauses_failed();
  // It has parked since: the broker can have the memory.
  if (pauses_failed_ == 0) owes_turn_off_ = false;
  // Not before the pause is over, nor while the idler parks: the scope that stands
  // for "off" would wait for the broker, and this thread could not park.
  if (owes_turn_off_ && LetsScopesIn(session_->gate().cells())) {
    idler_.StopPolling(now);
    if (idler_.at() == Idler::At::kRest) {
      owes_turn_off_ = false;
      if (on_) TurnOff().IgnoreError();
    }
  }
  return std::min(next, latest);
}

// A process that has just allocated memory is about to use it.
bool AutomaticGate::MeansIdle(Clock::time_point quiet) const {
  return BiasSlots::Look().calls > 0 ||
         quiet - began_ >= kUnusedFor * options_.idling.park_after;
}

// Where the broker refuses, the gate stays on, and that is tried again; nothing
// is taken from a process that is never parked.
AutomaticGate::Clock::time_point AutomaticGate::StayOff(const std::string& why,
                                                        Clock::time_point now) {
  bias_.GiveUp();
  if (on_) TurnOff().IgnoreError();
  if (!std::exchange(never_said_, true))
    session_->gate_switch().SayNeverLends(why);
  return on_ ? now + std::chrono::seconds(10) : Clock::time_point::max();
}

void AutomaticGate::TurnOn(Clock::time_point now) {
  // Ranks wait for each other from the first collective on: for all of them, also
  // those that are not here yet, or on another machine and never will be.
  if (group_members_ > 0) {
    const absl::StatusOr<uint32_t> members =
        session_->gate_switch().CountGroup();
    if (!members.ok() || *members < group_members_) {
      not_on_before_ = now + kBetweenCounts;
      return;
    }
    group_members_ = 0;
  }
  const absl::Status status = session_->gate_switch().TurnOn(
      absl::FromChrono(options_.idling.park_after), group_);
  on_ = status.ok();
  idler_.SetMayPark(on_);
  if (!on_) not_on_before_ = now + options_.idling.first_backoff;
}

absl::Status AutomaticGate::TurnOff() {
  GMB_RETURN_IF_ERROR(session_->gate_switch().TurnOff(kTurnOffWait));
  on_ = false;
  idler_.SetMayPark(false);
  return absl::OkStatus();
}

// --- Both.

// False: to stop.
bool AutomaticGate::Sleep(Clock::time_point until) {
  base::MutexLock lock(&mu_);
  while (!woken_ && !stopped_) {
    if (until == Clock::time_point::max()) {
      changed_.Wait(&mu_);
    } else if (!changed_.WaitUntil(&mu_, until)) {
      break;
    }
  }
  woken_ = false;
  return !stopped_;
}

void AutomaticGate::Wake() {
  base::MutexLock lock(&mu_);
  woken_ = true;
  changed_.NotifyAll();
}

bool AutomaticGate::stopped() {
  base::MutexLock lock(&mu_);
  return stopped_;
}

std::string AutomaticGate::never() {
  base::MutexLock lock(&mu_);
  return never_;
}

void AutomaticGate::NeverPark(const std::string& why) {
  {
    base::MutexLock lock(&mu_);
    if (!never_.empty()) return;
    never_ = why;
    woken_ = true;
    changed_.NotifyAll();
  }
  options_.say(absl::StrCat("this process never lends its memory: ", why));
}

void AutomaticGate::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  devices_.Stop();
}

}  // namespace gmb::internal
