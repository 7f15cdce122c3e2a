#ifndef GMB_BROKER_SERVER_SEEN_REVISION_H_
#define GMB_BROKER_SERVER_SEEN_REVISION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "broker/declared/declared.h"

namespace gmb::broker {

// Whether what is declared is what the caller has seen, which is `expected`; 0:
// whatever it is.
[[nodiscard]] absl::Status CheckRevision(const Declared& declared,
                                         uint64_t expected);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SEEN_REVISION_H_
