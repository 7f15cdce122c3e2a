// Calls of an operator whose answers nobody reads.
#include <poll.h>

#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr int kUnreadCalls = 20;

void Call(HttpConnection* connection, const std::string& method,
          const std::string& token) {
  const uint32_t stream = connection->NextStream();
  connection->Append(Frame(FrameType::kHeaders, kEndHeaders, stream,
                           CallHeaders(method, token)));
  connection->Append(
      Frame(FrameType::kData, kEndStream, stream, std::string(5, '\0')));
}

}  // namespace

absl::Status UnreadCalls(Attack& attack) {
  const AttackOptions& options = attack.options();
  const std::vector<std::string> methods = {
      "/gmb.v1.Admin/Watch", "/gmb.v1.Admin/ListLeases",
      "/gmb.v1.Admin/ListSessions", "/gmb.v1.Admin/ListAudit",
      "/gmb.v1.Admin/Diagnose"};
  Sessions sessions(&attack);
  std::vector<HttpConnection> connections(
      static_cast<size_t>(options.connections));
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, 5);
    if (!sessions.Ready()) continue;
    for (HttpConnection& connection : connections) {
      if (connection.is_open()) {
        connection.Write();
        continue;
      }
      if (!connection.Connect(options.socket_dir + "/gmb.sock")) continue;
      attack.Count("connections");
      connection.Append(Opening());
      for (size_t i = 0; i < kUnreadCalls; ++i)
        Call(&connection, methods[i % methods.size()], sessions.Token());
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
