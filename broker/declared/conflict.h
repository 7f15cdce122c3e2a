#ifndef GMB_BROKER_DECLARED_CONFLICT_H_
#define GMB_BROKER_DECLARED_CONFLICT_H_

#include <string>

#include "absl/status/status.h"
#include "broker/declared/declared.h"

namespace gmb::broker {

// "guarantee=60% is of the file, limit=50% of operator uid 0": said where a
// guarantee is above a limit, so that it is known whom to ask. Empty: both are
// of one source, everywhere.
[[nodiscard]] std::string DifferentSources(const Subject& subject);

// Refuses a guarantee of one source above a limit of another, as far as that
// can be told without knowing the pool. The error names both.
[[nodiscard]] absl::Status CheckConflicts(const Declared& declared);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_CONFLICT_H_
