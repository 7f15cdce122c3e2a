// Files whose server does not write what was changed in them, sent to the
// broker to be closed by it: no signal ends such a wait.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/send_fds.h"
#include "tests/ipc/silent_files.h"

namespace gmb::attack {
namespace {

// More than the broker closes at once, and than it lets wait.
constexpr int kMostFiles = 512;
constexpr int kFusePauseMs = 5;

// The broker leaves it unread: this process has not greeted.
absl::Status SendOne(Attack& attack, testing::SilentFiles* files,
                     const std::string& path) {
  const base::UniqueFd connection = ConnectNow(path, SOCK_STREAM);
  if (!connection.valid()) {
    attack.Count("refused");
    return absl::OkStatus();
  }
  std::vector<base::UniqueFd> sent;
  sent.push_back(files->Open());
  if (!sent.back().valid()) return absl::ErrnoToStatus(errno, "FUSE: open");
  const int error = SendFds(connection.get(), Opening(), sent);
  attack.Count(error == 0 ? "sent" : "not_sent");
  sent.clear();  // the broker's is the last one now
  if (error == 0) files->ChangeLast();
  return absl::OkStatus();
}

}  // namespace

absl::Status FuseFds(Attack& attack) {
  const std::string& dir = attack.options().socket_dir;
  absl::StatusOr<std::unique_ptr<testing::SilentFiles>> files =
      testing::SilentFiles::Mount(dir);
  if (!files.ok()) return files.status();
  int made = 0;
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, kFusePauseMs);
    if (made++ >= kMostFiles) continue;
    const absl::Status sent = SendOne(attack, files->get(), dir + "/gmb.sock");
    if (!sent.ok()) return sent;
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
