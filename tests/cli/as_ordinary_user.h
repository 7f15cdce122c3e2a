#ifndef GMB_TESTS_CLI_AS_ORDINARY_USER_H_
#define GMB_TESTS_CLI_AS_ORDINARY_USER_H_

#include <functional>
#include <string>

namespace gmb::cli {

// The answer of `say` in a process of a user for whom a directory of mode 0 is
// closed: root would enter it all the same. Not once there are threads.
std::string AsOrdinaryUser(const std::function<std::string()>& say);

}  // namespace gmb::cli

#endif  // GMB_TESTS_CLI_AS_ORDINARY_USER_H_
