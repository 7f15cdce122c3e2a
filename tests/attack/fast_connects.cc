// Connections faster than anybody accepts, so that a backlog that others share
// is full when these come.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "absl/time/clock.h"
#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"

namespace gmb::attack {
namespace {

constexpr size_t kSpareFds = 64;

size_t FdsForConnections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 2 * kSpareFds ? limit.rlim_cur - kSpareFds
                                        : kSpareFds;
}

}  // namespace

absl::Status FastConnects(Attack& attack) {
  const AttackOptions& options = attack.options();
  const std::string path = options.socket_dir + "/" + options.socket;
  const int type = options.socket == "gmb.sock" ? SOCK_STREAM : SOCK_SEQPACKET;
  const size_t most = FdsForConnections();
  std::deque<base::UniqueFd> kept;
  const absl::Time start = absl::Now();
  uint64_t made = 0;
  while (attack.GoesOn()) {
    const double gone = absl::ToDoubleSeconds(absl::Now() - start);
    if (options.rate > 0 && static_cast<double>(made) > gone * options.rate) {
      ::poll(nullptr, 0, 1);
      continue;
    }
    ++made;
    base::UniqueFd fd = ConnectNow(path, type);
    if (!fd.valid()) {
      attack.Count(errno == EAGAIN ? "backlog_full" : "failed");
      continue;
    }
    attack.Count("connections");
    if (!options.keep) continue;
    if (kept.size() == most) kept.pop_front();
    kept.push_back(std::move(fd));
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
