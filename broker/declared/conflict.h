#ifndef GMB_BROKER_DECLARED_CONFLICT_H_
#define GMB_BROKER_DECLARED_CONFLICT_H_

#include <string>

#include "absl/status/status.h"
#include "broker/declared/declared.h"

namespace gmb::broker {

// "guarantee=60% is of the file, limit=50% is of operator uid 0": said where a
// guarantee is above a limit, so that it is known whom to ask. Empty: both are
// of one source, everywhere.
[[nodiscard]] std::string DifferentSources(const Subject& subject);

// Whether a guarantee and the limit beside it are of different sources, and
// have the values that they had in `before`.
[[nodiscard]] bool HasFormerPair(const Subject& before, const Subject& now);

// Refuses a guarantee of one source above a limit of another, as far as that
// can be told without knowing the pool. The error names both. A pair that was so
// in `before` is no error: a value for a time has ended, and the guarantee is
// left out until it fits.
[[nodiscard]] absl::Status CheckConflicts(const Declared& before,
                                          const Declared& next);

// The same of one tenant, as it will be at each end of values for a time.
[[nodiscard]] absl::Status CheckConflictsToCome(const std::string& name,
                                                const Declared& before,
                                                const Declared& next);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_CONFLICT_H_
