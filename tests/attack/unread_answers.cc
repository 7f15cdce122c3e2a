// Sessions that ask without end, and say by HTTP/2's own means that they take
// no answer: nothing of it lies in a socket, where it could be seen.
#include <poll.h>

#include <string>
#include <vector>

#include "gmb/v1/session.pb.h"
#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr int kUnreadTurnMs = 10;
constexpr int kAtOnce = 400;

struct Asker {
  OwnSession session;
  HttpConnection connection;
  uint32_t stream = 0;
  uint64_t last_id = 0;
};

void Open(Asker* asker, Attack* attack) {
  HttpConnection& connection = asker->connection;
  if (!connection.Connect(attack->options().socket_dir + "/gmb.sock")) return;
  attack->Count("connections");
  connection.Append(Opening());
  // SETTINGS_INITIAL_WINDOW_SIZE: 0.
  connection.Append(
      Frame(FrameType::kSettings, 0, 0, std::string("\0\4\0\0\0\0", 6)));
  asker->stream = connection.NextStream();
  connection.Append(
      Frame(FrameType::kHeaders, kEndHeaders, asker->stream,
            CallHeaders(kSessionMethod, asker->session.welcome().token())));
}

void Turn(Asker* asker, Attack* attack) {
  HttpConnection& connection = asker->connection;
  if (!connection.is_open()) return Open(asker, attack);
  connection.Read();
  if (!connection.is_open()) {
    attack->Count("closed");
    return;
  }
  if (connection.unwritten() == 0) {
    for (int i = 0; i < kAtOnce; ++i) {
      v1::ClientMessage ask;
      ask.set_request_id(++asker->last_id);
      ask.mutable_get_quota();
      connection.Append(Message(asker->stream, ask.SerializeAsString()));
    }
  }
  attack->Count("bytes", connection.Write());
}

}  // namespace

absl::Status UnreadAnswers(Attack& attack) {
  std::vector<Asker> askers;
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, kUnreadTurnMs);
    if (askers.size() < static_cast<size_t>(attack.options().connections)) {
      absl::StatusOr<OwnSession> greeted =
          OwnSession::Greet(attack.options().socket_dir);
      attack.Count(greeted.ok() ? "sessions" : "refused");
      if (greeted.ok()) askers.push_back({*std::move(greeted), {}});
    }
    for (Asker& asker : askers) Turn(&asker, &attack);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
