// `gmb run`: the gate that the program does not know of.
#include "client/preload/program_gate.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "client/preload/broker_library.h"
#include "client/preload/contexts.h"
#include "client/preload/past_the_gate.h"
#include "client/preload/process_life.h"
#include "client/preload/say.h"
#include "client/preload/settings.h"
#include "gmb/c_api.h"

namespace gmb::preload {
namespace {

Contexts* the_contexts = nullptr;

// Known before there was a gate.
std::atomic<const char*> known_before{nullptr};
std::atomic<const char*> group_of_ranks{nullptr};
std::atomic<unsigned> ranks_in_group{0};

// Of one thread at a time, like the hooks. False: the process is not to be
// parked now, since somebody may have come that cannot be seen.
bool LookPastTheGate() {
  static LookTimes times;
  static UnseenTimes unseen_times;
  static bool seen = true;
  const auto now = LookTimes::Clock::now();
  if (!times.Due(std::this_thread::get_id(), now)) return seen;
  const char* unseen = nullptr;
  for (const char* const why :
       {WatchedBy(), OpenToOtherDevices(), BoundPastUs()}) {
    if (IsUnseen(why)) {
      unseen = why;
    } else if (why != nullptr) {
      ProgramGate::NeverPark(why);
    }
  }
  if (unseen_times.Judge(unseen == nullptr, now) ==
      UnseenTimes::Verdict::kNever) {
    ProgramGate::NeverPark(unseen);
  }
  seen = unseen == nullptr || TheSettings().park == Settings::Park::kForce;
  return seen;
}

}  // namespace

void ProgramGate::Begin(gmb_client* client, Contexts* contexts) {
  if (TheSettings().park == Settings::Park::kOff || Get() != nullptr) return;
  if (!TheSettings().KnowsGroup()) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) {
      SayAlways(
          "this process never lends its memory: GMB_RUN_GROUP is no name of 1 "
          "to 63 printable characters");
    }
    return;
  }
  const BrokerLibrary& library = *BrokerLibrary::Get();
  the_contexts = contexts;
  internal::BiasHooks hooks{};
  hooks.version = internal::kBiasCallsVersion;
  hooks.park_after_ms =
      static_cast<uint32_t>(std::max<int64_t>(1, TheSettings().park_after_ms));
  hooks.parks_forced = TheSettings().park == Settings::Park::kForce;
  hooks.group = TheSettings().group.c_str();
  hooks.record = [] { return LookPastTheGate() && the_contexts->Record(); };
  hooks.poll = [] { return static_cast<int>(the_contexts->Poll()); };
  hooks.heeds_pauses = [] { return shared.load() == 0; };
  hooks.say = [](const char* text) { SayAlways(text); };
  const internal::BiasCalls* begun = nullptr;
  gmb_error* const error =
      library.gmb_internal_automatic_gate(client, &hooks, &begun);
  if (error != nullptr) {
    const std::string line =
        std::string("nothing is lent: ") + library.gmb_error_message(error);
    // A user that names a group counts on it.
    TheSettings().group.empty() ? Say(line) : SayAlways(line);
    library.gmb_error_free(error);
    return;
  }
  calls.store(begun, std::memory_order_seq_cst);
  NoteExitFromNowOn();
  if (!contexts->CanRecord())
    NeverPark("the driver is older than CUDA 12.5 and has no cuCtxRecordEvent");
  if (const char* const why = known_before.load(std::memory_order_seq_cst))
    NeverPark(why);
  if (const char* const group = group_of_ranks.load(std::memory_order_seq_cst))
    begun->join_group(group, ranks_in_group.load(std::memory_order_relaxed));
}

void ProgramGate::NeverPark(const char* why) {
  if (TheSettings().park == Settings::Park::kForce || InForkedChild()) return;
  // One of this and Begin sees what the other has stored.
  known_before.store(why, std::memory_order_seq_cst);
  if (const internal::BiasCalls* const gate = Get()) gate->never_park(why);
}

bool ProgramGate::EndLending(const char* why) {
  {
    // All of the memory is there from here on. Nothing is parked while this call
    // is in, and nothing is once it has said never.
    const GatedCall call;
    if (!call.in()) return false;
    NeverPark(why);
  }
  // There may have been no gate then, and one before this line.
  const GatedCall call;
  return call.in();
}

void ProgramGate::JoinRanks(const char* group, unsigned ranks) {
  if (InForkedChild()) return;
  // As in NeverPark; to join twice is to join once.
  ranks_in_group.store(ranks, std::memory_order_relaxed);
  group_of_ranks.store(group, std::memory_order_seq_cst);
  if (const internal::BiasCalls* const gate = Get())
    gate->join_group(group, ranks);
}

int MemoryIsAway() {
  return Exiting() ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_SYSTEM_NOT_READY;
}

void ProgramGate::Stop() {
  if (const internal::BiasCalls* const gate = Get()) gate->stop();
}

}  // namespace gmb::preload
