// A keeper that is started by a command which is to end once it serves.
#include "keeper/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"

namespace gmb::keeper {
namespace {

// Of the one that goes on: 0 once it has told, else how it ended.
int Await(pid_t pid, const base::UniqueFd& told) {
  char serves = 0;
  ssize_t n = 0;
  do {
    n = ::read(told.get(), &serves, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) return 0;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::StatusOr<std::optional<int>> Background::Enter(Background* background) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "pipe");
  base::UniqueFd told(ends[0]);
  base::UniqueFd tell(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid > 0) {
    tell.reset();
    return Await(pid, told);
  }
  ::setsid();
  // A reader of what the command says waits for no more of it.
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
  background->tell_ = std::move(tell);
  return std::nullopt;
}

void Background::Tell() {
  if (tell_.valid()) (void)!::write(tell_.get(), "", 1);
  tell_.reset();
}

}  // namespace gmb::keeper
