#ifndef GMB_TESTS_IPC_OPEN_FDS_H_
#define GMB_TESTS_IPC_OPEN_FDS_H_

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace gmb::testing {

// How many fds this process has open.
inline size_t OpenFds() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  // Less the one that lists the others.
  return static_cast<size_t>(std::distance(begin(entries), end(entries))) - 1;
}

}  // namespace gmb::testing

#endif  // GMB_TESTS_IPC_OPEN_FDS_H_
