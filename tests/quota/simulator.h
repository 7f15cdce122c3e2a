// Replays a trace through the engine in simulated time: releases leases when
// they have been held long enough, sends ticks when deadlines are due, and
// counts what happened.
#ifndef GMB_TESTS_QUOTA_SIMULATOR_H_
#define GMB_TESTS_QUOTA_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>

#include "quota/engine.h"
#include "tests/quota/trace.h"

namespace gmb::quota {

struct SimulatorResult {
  uint64_t events = 0;
  uint64_t granted_at_once = 0;
  uint64_t granted_after_waiting = 0;
  std::map<Reason, uint64_t> denied;
  uint64_t quotas_pending = 0;
  uint64_t quotas_refused = 0;
  uint64_t most_waiting = 0;
  Nanoseconds total_wait{0};
  double mean_utilisation = 0;  // leased / capacity, over pools and time
  // Of the engine, in real time.
  double mean_decision_ns = 0;

  std::string Summary() const;
};

// Everything is released and every wait is over when it returns.
SimulatorResult Simulate(const Trace& trace, Engine& engine);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_SIMULATOR_H_
