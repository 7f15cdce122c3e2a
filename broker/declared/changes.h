#ifndef GMB_BROKER_DECLARED_CHANGES_H_
#define GMB_BROKER_DECLARED_CHANGES_H_

#include <string>

#include "broker/declared/declared.h"

namespace gmb::broker {

// What is in force after and was not before, for logs and the audit:
// "a: limit 50% -> 75%; tenant b is new: limit 10%". Empty: nothing.
[[nodiscard]] std::string ChangesText(const Declared& before,
                                      const Declared& after);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_CHANGES_H_
