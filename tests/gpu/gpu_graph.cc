#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmb/client.h"
#include "proto/amount_text.h"
#include "tests/device/adding_graph.h"

// A client that leases memory, captures a CUDA graph over it, replays it once,
// and is parked ("parked"). For every line that it reads then it enters a
// scope, replays the graph, says "replayed N", and is parked again. At anything
// but an empty line it checks all bytes ("right", or what is wrong) and ends.

namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

absl::Status Check(const gmb::Lease& lease, uint64_t replays) {
  constexpr uint64_t kPiece = uint64_t{64} << 20;
  std::vector<uint64_t> words(kPiece / 8);
  for (uint64_t at = 0; at < lease.size_bytes(); at += kPiece) {
    const uint64_t bytes = std::min(kPiece, lease.size_bytes() - at);
    if (absl::Status read = lease.CopyToHost(words.data(), at, bytes);
        !read.ok()) {
      return read;
    }
    for (uint64_t i = 0; i < bytes / 8; ++i) {
      if (words[i] == replays * (at / 8 + i + 1)) continue;
      return absl::DataLossError(absl::StrCat("word ", at / 8 + i, " is ",
                                              words[i], " after ", replays));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& socket_dir, uint64_t bytes) {
  gmb::ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = gmb::Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  auto lease = (*client)->Acquire(bytes);
  if (!lease.ok()) return lease.status();
  if (absl::Status filled = lease->Fill(0, 0, lease->size_bytes());
      !filled.ok()) {
    return filled;
  }
  absl::Status on = (*client)->TurnGateOn({.park_after = absl::ZeroDuration()});
  if (!on.ok()) return on;
  auto capturing = (*client)->EnterCapture(kLong);
  if (!capturing.ok()) return capturing.status();
  auto graph = gmb::device::AddingGraph::Capture(lease->device(), lease->data(),
                                                 lease->size_bytes());
  if (!graph.ok()) return graph.status();
  if (absl::Status first = graph->Replay(); !first.ok()) return first;
  capturing->Leave();
  std::printf("parked\n");
  std::fflush(stdout);
  uint64_t replays = 1;
  while (std::getchar() == '\n') {
    const auto scope = (*client)->Enter(kLong);
    if (!scope.ok()) return scope.status();
    if (absl::Status replayed = graph->Replay(); !replayed.ok())
      return replayed;
    std::printf("replayed %d\n", static_cast<int>(++replays));
    std::fflush(stdout);
  }
  return Check(*lease, replays);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: gpu_graph SOCKET_DIR BYTES\n");
    return 2;
  }
  const absl::StatusOr<uint64_t> bytes = gmb::proto::ParseBytes(argv[2]);
  const absl::Status status =
      bytes.ok() ? Run(argv[1], *bytes) : bytes.status();
  std::printf("%s\n", status.ok() ? "right" : status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
