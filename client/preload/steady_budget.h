#ifndef GMB_CLIENT_PRELOAD_STEADY_BUDGET_H_
#define GMB_CLIENT_PRELOAD_STEADY_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "client/preload/broker_link.h"

namespace gmb::preload {

// A budget that only its own tenant moves for a while after the first question.
// Programs that measure themselves at their start compare what is free before
// and after, and take what other tenants give back meanwhile for an error. Not
// thread-safe.
class SteadyBudget {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr auto kSteadyFor = std::chrono::seconds(60);

  // The budget that the program is told, when the broker says `budget`.
  [[nodiscard]] Budget At(const Budget& budget, TimePoint now);

 private:
  std::optional<TimePoint> first_question_;
  Budget first_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_STEADY_BUDGET_H_
