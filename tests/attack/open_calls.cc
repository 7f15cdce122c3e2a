// Sessions of one process, a connection for each, and as many calls on it as
// may be open: none of them ends by itself, and parts of messages lie in them.
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr int kCallsAConnection = 60;
constexpr int kTurnMs = 20;
// Each is kept as an entry of its own.
constexpr int kPieces = 6000;
constexpr int kPiecesAtOnce = 300;

// A message of 200 KiB that never ends. No piece ends the call.
std::string MessageStart() { return std::string("\0\0\3\x20\0", 5); }

struct Caller {
  OwnSession session;
  HttpConnection connection;
  std::string unparsed = {};
  std::vector<uint32_t> streams = {};
  int pieces = 0;  // in each call
};

void OpenAll(Caller* caller, Attack* attack) {
  const std::vector<std::string> methods = {
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      "/grpc.health.v1.Health/Watch", "/grpc.health.v1.Health/Check",
      "/gmb.v1.Admin/GetStatus"};
  HttpConnection& connection = caller->connection;
  if (!connection.Connect(attack->options().socket_dir + "/gmb.sock")) return;
  attack->Count("connections");
  connection.Append(Opening());
  caller->unparsed.clear();
  caller->streams.clear();
  caller->pieces = 0;
  for (size_t i = 0; i < kCallsAConnection; ++i) {
    const uint32_t stream = connection.NextStream();
    connection.Append(Frame(FrameType::kHeaders, kEndHeaders, stream,
                            CallHeaders(methods[i % methods.size()],
                                        caller->session.welcome().token())));
    connection.Append(Frame(FrameType::kData, 0, stream, MessageStart()));
    caller->streams.push_back(stream);
  }
}

// A call is refused by one frame of headers.
void TakeAnswers(Caller* caller, Attack* attack) {
  absl::string_view bytes = caller->unparsed;
  while (const std::optional<ReceivedFrame> frame = TakeFrame(&bytes)) {
    if (frame->type == FrameType::kHeaders) attack->Count("answered");
  }
  caller->unparsed.erase(0, caller->unparsed.size() - bytes.size());
}

void Turn(Caller* caller, Attack* attack) {
  HttpConnection& connection = caller->connection;
  if (!connection.is_open()) return OpenAll(caller, attack);
  connection.Read(&caller->unparsed);
  TakeAnswers(caller, attack);
  if (!connection.is_open()) {
    attack->Count("closed");
    return;
  }
  if (connection.unwritten() == 0 && caller->pieces < kPieces) {
    // One call after another, and not more than it takes without asking.
    const size_t call = static_cast<size_t>(caller->pieces / kPiecesAtOnce) %
                        caller->streams.size();
    for (int i = 0; i < kPiecesAtOnce; ++i)
      connection.Append(
          Frame(FrameType::kData, 0, caller->streams[call], "1234"));
    caller->pieces += kPiecesAtOnce;
  }
  attack->Count("bytes", connection.Write());
}

}  // namespace

absl::Status OpenCalls(Attack& attack) {
  std::vector<Caller> callers;
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, kTurnMs);
    if (callers.size() < static_cast<size_t>(attack.options().connections)) {
      absl::StatusOr<OwnSession> greeted =
          OwnSession::Greet(attack.options().socket_dir);
      attack.Count(greeted.ok() ? "sessions" : "refused");
      if (greeted.ok()) callers.push_back({*std::move(greeted), {}});
    }
    for (Caller& caller : callers) Turn(&caller, &attack);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
