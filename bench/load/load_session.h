#ifndef GMB_BENCH_LOAD_LOAD_SESSION_H_
#define GMB_BENCH_LOAD_LOAD_SESSION_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/load/tally.h"
#include "gmb/client.h"

namespace gmb::bench {

// How often a session does what, beside each other: acquires, releases, works
// in a scope, and rests, so that it is parked and its memory serves others.
struct Mix {
  uint32_t acquire = 3;
  uint32_t release = 2;
  uint32_t work = 6;
  uint32_t rest = 3;
};

struct SessionPlan {
  uint64_t tag = 0;  // its tenant's, 1 to 255
  uint64_t seed = 0;
  Mix mix;
  uint64_t most_bytes = 0;  // of a lease
  uint32_t most_leases = 0;
  absl::Duration pause;  // between two steps, on average
};

// One session that does something at random, step by step, and looks at every
// byte. Used by one thread.
class LoadSession {
 public:
  // `client`, with its gate on, and what is counted outlive it.
  LoadSession(Client* client, const SessionPlan& plan, SessionSlot* slot,
              Tally* tally);

  // An error: what must not happen whatever the others do.
  [[nodiscard]] absl::Status Step();
  // Looks at all that it has, and gives it back.
  [[nodiscard]] absl::Status Finish();

 private:
  struct Held {
    Lease lease;
    void* address;
    uint64_t seed = 0;
    bool written = false;
    bool sealed = false;
  };

  absl::Status Acquire();
  absl::Status Release();
  absl::Status Work();
  void Rest();
  absl::Status GiveBack(size_t which);
  // In a scope, or not, where the memory did not come back in time.
  absl::Status Enter(Scope* scope, bool* in);
  absl::Status Check(const Held& held);
  absl::Status Write(Held* held);
  void Begin(Op op);
  void Count(Op op, absl::Time began);
  [[nodiscard]] bool IsRefusal(const absl::Status& status);

  Client* const client_;
  const SessionPlan plan_;
  SessionSlot* const slot_;
  Tally* const tally_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  std::vector<uint64_t> words_;  // of the lease that is looked at, or written
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_LOAD_SESSION_H_
