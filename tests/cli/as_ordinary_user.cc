#include "tests/cli/as_ordinary_user.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace gmb::cli {

std::string AsOrdinaryUser(const std::function<std::string()>& say) {
  constexpr uid_t kNobody = 65534;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 ||
                           setuid(kNobody) != 0)) {
      _exit(1);
    }
    const std::string said = say();
    const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 1024> part{};
  for (ssize_t n; (n = read(ends[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : "the process failed: " + said;
}

}  // namespace gmb::cli
