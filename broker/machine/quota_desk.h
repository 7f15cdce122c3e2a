#ifndef GMB_BROKER_MACHINE_QUOTA_DESK_H_
#define GMB_BROKER_MACHINE_QUOTA_DESK_H_

#include <optional>
#include <utility>
#include <vector>

#include "broker/machine/index_keeper.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "quota/effect.h"
#include "quota/event.h"
#include "quota/view.h"

namespace gmb::broker {

// Tells the quota engine what happens. The engine decides at once; its answers
// are queued in the turn. Owns the engine.
class QuotaDesk {
 public:
  QuotaDesk(State& state, IndexKeeper& index) : state_(state), index_(index) {}

  void Tell(const quota::Event& event, Turn& turn);
  // Nothing comes between the question and the change.
  [[nodiscard]] std::optional<quota::Refusal> TryToTell(
      const quota::HardChanged& event, Turn& turn);
  // Whether anything was told since this was asked last.
  [[nodiscard]] bool TakeTold() { return std::exchange(told_, false); }
  // Leases that another broker has granted; see quota::Engine::Adopt.
  void Adopt(const std::vector<quota::AdoptedLease>& leases,
             uint64_t last_lease, Turn& turn);
  // Ids are used once.
  [[nodiscard]] quota::RequestId NextRequest();

 private:
  static void Queue(const quota::Effects& effects, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  bool told_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_QUOTA_DESK_H_
