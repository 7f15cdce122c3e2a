// Effects and events as text, for comparison and for failure messages.
#ifndef GMB_TESTS_QUOTA_DESCRIBE_H_
#define GMB_TESTS_QUOTA_DESCRIBE_H_

#include <string>

#include "quota/effect.h"
#include "quota/event.h"

namespace gmb::quota {

std::string Describe(const Event& event);
// Leaves out retry_after, which is a hint.
std::string Describe(const Effect& effect);
// The answers to requests in order, then the others, sorted; no BudgetChanged.
std::string DescribeAnswers(const Effects& effects);

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_DESCRIBE_H_
