// Writers of one byte at a time, on both sockets.
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

struct Writer {
  base::UniqueFd socket;
  size_t at = 0;
};

}  // namespace

absl::Status SingleBytes(Attack& attack) {
  const AttackOptions& options = attack.options();
  const bool grpc = options.socket == "gmb.sock";
  Sessions sessions(&attack);
  std::vector<Writer> writers(static_cast<size_t>(options.connections));
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, 1);
    if (!sessions.Ready()) continue;
    const std::string text =
        Opening() + Frame(FrameType::kHeaders, kEndHeaders, 1,
                          CallHeaders(kSessionMethod, sessions.Token()));
    for (Writer& writer : writers) {
      if (!writer.socket.valid()) {
        writer.socket = ConnectNow(options.socket_dir + "/" + options.socket,
                                   grpc ? SOCK_STREAM : SOCK_SEQPACKET);
        writer.at = 0;
        attack.Count(writer.socket.valid() ? "connections" : "refused");
        if (!writer.socket.valid()) continue;
      }
      if (writer.at == text.size()) continue;  // said, and kept
      const ssize_t sent = ::send(writer.socket.get(), &text[writer.at], 1,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent == 1) {
        ++writer.at;
        attack.Count("bytes");
      } else if (errno != EAGAIN) {
        writer.socket.reset();
        attack.Count("closed");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
