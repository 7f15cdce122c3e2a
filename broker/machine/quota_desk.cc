// The one door to the quota engine.
#include "broker/machine/quota_desk.h"

#include <algorithm>
#include <variant>

#include "broker/machine/recorder.h"

namespace gmb::broker {
namespace {

bool IsTold(const quota::QuotaApplied& applied, const quota::Effects& effects) {
  return std::any_of(
      effects.begin(), effects.end(), [&](const quota::Effect& effect) {
        const auto* changed = std::get_if<quota::BudgetChanged>(&effect);
        return changed != nullptr && changed->tenant == applied.tenant &&
               changed->pool == applied.pool;
      });
}

}  // namespace

void QuotaDesk::Tell(const quota::Event& event, Turn& turn) {
  index_.MarkChangedBy(event);
  told_ = true;
  if (const auto* hard = std::get_if<quota::HardChanged>(&event))
    Recorder(state_).Touch(hard->lease);
  Queue(state_.engine.Edit({}).Handle(event, turn.now()), turn);
}

void QuotaDesk::Adopt(const std::vector<quota::AdoptedLease>& leases,
                      uint64_t last_lease, Turn& turn) {
  index_.MarkChangedEverywhere();
  told_ = true;
  Queue(state_.engine.Edit({}).Adopt(leases, last_lease, turn.now()), turn);
}

void QuotaDesk::Queue(const quota::Effects& effects, Turn& turn) {
  for (const quota::Effect& effect : effects) {
    turn.Queue(effect);
    // A change that was pending has taken effect: the sessions are told, unless
    // they are told of this very change anyway.
    const auto* applied = std::get_if<quota::QuotaApplied>(&effect);
    if (applied != nullptr && !IsTold(*applied, effects))
      turn.Queue(quota::BudgetChanged{applied->tenant, applied->pool});
  }
}

std::optional<quota::Refusal> QuotaDesk::TryToTell(
    const quota::HardChanged& event, Turn& turn) {
  if (auto refusal = state_.engine->Check(event)) return refusal;
  Tell(event, turn);
  return std::nullopt;
}

quota::RequestId QuotaDesk::NextRequest() {
  return {state_.next_request.Edit({})++};
}

}  // namespace gmb::broker
