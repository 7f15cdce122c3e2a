#ifndef GMB_BROKER_DECLARED_CHANGES_H_
#define GMB_BROKER_DECLARED_CHANGES_H_

#include <string>

#include "broker/declared/declared.h"

namespace gmb::broker {

// The values that are in force after and were not before, for logs and the
// audit: "a: limit 50% -> 75%; tenant b is new: limit 10%". Empty: none.
[[nodiscard]] std::string ChangesText(const Declared& before,
                                      const Declared& after);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_CHANGES_H_
