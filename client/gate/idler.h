#ifndef GMB_CLIENT_GATE_IDLER_H_
#define GMB_CLIENT_GATE_IDLER_H_

#include <chrono>
#include <cstdint>
#include <utility>

#include "client/gate/bias.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// The questions of the idler to the devices of a process.
class IdlerDevices {
 public:
  // Records an event for each context. False where that is not known to be
  // harmless: a capture is open, which it would destroy, or a context is being
  // made or ended. Captures and this exclude each other.
  [[nodiscard]] virtual bool Record() = 0;

  // Of the events that were recorded last. kLost: one of them is gone with its
  // context, or failed; it says nothing about the work.
  enum class Work : uint8_t { kBusy, kDone, kLost };
  [[nodiscard]] virtual Work Poll() = 0;

  // Whether it may be parked before it has been idle for long.
  [[nodiscard]] virtual bool HeedsPauses() { return true; }

 protected:
  ~IdlerDevices() = default;
};

struct IdlerOptions {
  // Without a call for so long, the gate is parked.
  std::chrono::nanoseconds park_after = std::chrono::seconds(1);
  // So long a pause may keep new calls waiting for those that are in.
  std::chrono::nanoseconds drain = std::chrono::milliseconds(100);
  std::chrono::nanoseconds poll_every = std::chrono::milliseconds(5);
  // So soon after a wake it looks whether calls still come, and then each time
  // after twice as long: so the length of a use is known up to a factor of two.
  std::chrono::nanoseconds first_look = std::chrono::milliseconds(1);
  // After a pause that did not find the process quiet in time, the next one is
  // not tried for so long; each further failure doubles it, up to the second.
  std::chrono::nanoseconds first_backoff = std::chrono::seconds(10);
  std::chrono::nanoseconds longest_backoff = std::chrono::minutes(10);
};

// Parks a process that marks its calls: one step of the protocol at a time, on
// one thread, which is not one that calls. Never waits.
class Idler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Its next step. The model's idler has the same steps.
  enum class At : uint8_t {
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

  // All of them outlive it.
  Idler(ipc::GateCells* cells, Bias* bias, IdlerDevices* devices,
        const IdlerOptions& options = {})
      : cells_(*cells), bias_(*bias), devices_(*devices), options_(options) {}

  // Does one step, and returns when the next one is due, or earlier when the
  // broker has paused the session.
  TimePoint Step(TimePoint now);

  // Rests where it waits for the GPU, unless calls wait for it.
  void StopPolling(TimePoint now);

  [[nodiscard]] At at() const { return at_; }
  // Why it will never park again; null while it may.
  [[nodiscard]] const char* never() const { return never_; }

  // May it park? At first not: then it looks whether it could, up to the step
  // before the standing scope goes out, and gives up there.
  void SetMayPark(bool may) { may_park_ = may; }
  // Whether it could have, since the last SetMayPark.
  [[nodiscard]] bool TakeQuietSeen() {
    return std::exchange(quiet_seen_, false);
  }
  // Pauses that did not find the process quiet in time; parking ends the row.
  [[nodiscard]] int pauses_failed() const { return pauses_failed_; }
  // Until then pauses are not heeded.
  [[nodiscard]] TimePoint backoff_until() const { return backoff_until_; }

 private:
  // Of the calls and scopes that are over.
  struct Counts {
    uint64_t calls = 0;
    uint64_t scopes = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  [[nodiscard]] Counts Count() const;
  [[nodiscard]] bool HeedsPauseNow(TimePoint now) const;
  [[nodiscard]] TimePoint NextLook(TimePoint now) const;
  // When the last call was over, for the broker.
  [[nodiscard]] TimePoint EndOfUse() const;

  TimePoint Rest(TimePoint now);
  TimePoint Drain(TimePoint now);
  TimePoint Poll(TimePoint now);
  TimePoint FenceThen(At next, TimePoint now);
  TimePoint Look(TimePoint now);
  TimePoint Sync(TimePoint now);
  TimePoint LookAgain(TimePoint now);
  TimePoint Park(TimePoint now);
  TimePoint GiveUp(TimePoint now);
  TimePoint Go(At next, TimePoint now) {
    at_ = next;
    return now;
  }
  // Rests for at least park_after.
  TimePoint Again(TimePoint now);
  void PauseFailed(TimePoint now);

  ipc::GateCells& cells_;
  Bias& bias_;
  IdlerDevices& devices_;
  const IdlerOptions options_;

  At at_ = At::kRest;
  const char* never_ = nullptr;
  bool may_park_ = false;
  bool quiet_seen_ = false;
  Counts noted_;
  bool began_ = false;  // since when it is quiet is known
  TimePoint quiet_since_{};
  bool was_busy_ = false;  // the GPU, when it was asked
  Counts parked_;          // as of the last parking
  uint64_t parked_slow_ = 0;
  bool pausing_ = false;
  TimePoint drain_until_{};  // while pausing_
  int pauses_failed_ = 0;
  TimePoint backoff_until_{};
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_IDLER_H_
