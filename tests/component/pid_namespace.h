#ifndef GMB_TESTS_COMPONENT_PID_NAMESPACE_H_
#define GMB_TESTS_COMPONENT_PID_NAMESPACE_H_

#include <sys/types.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/component/await.h"
#include "tests/component/program.h"

namespace gmb::component {

// The program's words (or none, for a wrapper) behind those that make it the
// first process of a pid namespace, as in a container. It ends with the
// unshare(1) that has started it.
inline std::vector<std::string> InPidNamespace(
    const std::vector<std::string>& program = {}) {
  std::vector<std::string> words = {"unshare", "--pid", "--fork",
                                    "--kill-child", "--mount-proc"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

// Whether this user may make them. Files of a look go to `directory`.
[[nodiscard]] inline bool MayMakePidNamespaces(const std::string& directory) {
  Program probe(directory, "pid-namespace", InPidNamespace({"true"}));
  return probe.AwaitExit() == 0;
}

// The pid, out here, of the program that runs as such a one; 0 if there is none.
[[nodiscard]] inline pid_t FirstOf(const Program& unshare) {
  pid_t first = 0;
  (void)Await([&] {
    std::ifstream children(absl::StrCat("/proc/", unshare.pid(), "/task/",
                                        unshare.pid(), "/children"));
    return static_cast<bool>(children >> first);
  });
  return first;
}

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_PID_NAMESPACE_H_
