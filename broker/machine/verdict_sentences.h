#ifndef GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_
#define GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_

#include <optional>
#include <string>
#include <vector>

#include "broker/machine/state.h"
#include "quota/planner.h"
#include "quota/units.h"

namespace gmb::broker {

// Why leases stay, one sentence a reason, those that hold most first. `tenant`:
// its leases alone.
[[nodiscard]] std::vector<std::string> VerdictSentences(
    const State& state, const std::vector<quota::LeaseVerdict>& why,
    std::optional<quota::TenantId> tenant);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_
