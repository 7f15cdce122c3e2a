#ifndef GMB_TESTS_END_WITH_PARENT_H_
#define GMB_TESTS_END_WITH_PARENT_H_

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace gmb {

// In a child, right after fork(): it does not outlive `parent`, the process that
// forked it. One that has ended before this line sends no signal any more; a child
// that lived on would keep the test's output open, and its reader waiting.
inline void EndWithParent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
}

}  // namespace gmb

#endif  // GMB_TESTS_END_WITH_PARENT_H_
