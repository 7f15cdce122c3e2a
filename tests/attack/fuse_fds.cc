// Files whose server does not answer, sent to the broker to be closed by it: no
// signal ends such a wait.
#include <poll.h>
#include <sys/socket.h>

#include <deque>
#include <memory>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/fuse_file.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"
#include "tests/attack/send_fds.h"

namespace gmb::attack {
namespace {

constexpr size_t kMostFiles = 64;

void SendTo(Attack& attack, const ipc::UniqueFd& socket,
            const std::string& bytes, int file) {
  if (!socket.valid()) {
    attack.Count("refused");
    return;
  }
  std::vector<ipc::UniqueFd> sent;
  sent.emplace_back(file);
  const int error = SendFds(socket.get(), bytes, sent);
  (void)sent.back().release();  // a close would wait
  attack.Count(error == 0 ? "sent" : "not_sent");
}

}  // namespace

absl::Status FuseFds(Attack& attack) {
  const std::string& dir = attack.options().socket_dir;
  absl::StatusOr<std::unique_ptr<FuseFile>> file = FuseFile::Mount(dir);
  if (!file.ok()) return file.status();
  Sessions sessions(&attack);
  std::deque<ipc::UniqueFd> connections;
  std::vector<int> files;
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, 10);
    if (!sessions.Ready()) continue;
    if (files.size() < kMostFiles) files.push_back((*file)->Open());
    if (files.back() < 0) return absl::FailedPreconditionError("FUSE: no open");
    connections.push_back(ConnectNow(dir + "/handle.sock", SOCK_SEQPACKET));
    SendTo(attack, connections.back(), "x", files.back());
    connections.push_back(ConnectNow(dir + "/gmb.sock", SOCK_STREAM));
    SendTo(attack, connections.back(), Opening(), files.back());
    while (connections.size() > kMostFiles) connections.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
