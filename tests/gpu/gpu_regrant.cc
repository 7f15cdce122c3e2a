#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmb/client.h"
#include "proto/amount_text.h"

// Waits for memory that another process holds, kills that process, and says
// how long it took until the memory was granted and mapped here.
namespace gmb {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{2} << 20;

absl::Status Run(const std::string& socket_dir, const std::string& size,
                 int pid) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(size);
  if (!bytes.ok()) return bytes.status();
  ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  // Opens the device, which is not what is measured.
  absl::StatusOr<Lease> small = (*client)->Acquire(kSmallBytes);
  if (!small.ok()) return small.status();
  if (absl::Status released = std::move(*small).Release(); !released.ok())
    return released;

  absl::Time killed = absl::InfinitePast();
  AcquireOptions request;
  request.wait = absl::Seconds(30);
  request.on_waiting = [&killed, pid](uint64_t) {
    if (killed != absl::InfinitePast()) return;
    killed = absl::Now();
    kill(pid, SIGKILL);
  };
  absl::StatusOr<Lease> lease = (*client)->Acquire(*bytes, request);
  const absl::Time mapped = absl::Now();
  if (!lease.ok()) return lease.status();
  if (killed == absl::InfinitePast())
    return absl::FailedPreconditionError("granted without waiting");
  std::printf("granted and mapped again %.1f ms after SIGKILL\n",
              absl::ToDoubleMilliseconds(mapped - killed));
  return std::move(*lease).Release();
}

}  // namespace
}  // namespace gmb

int main(int argc, char** argv) {
  int pid = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &pid) || pid <= 0) {
    std::fprintf(stderr, "usage: gpu_regrant SOCKET_DIR BYTES PID\n");
    return 2;
  }
  const absl::Status status = gmb::Run(argv[1], argv[2], pid);
  if (!status.ok()) {
    std::fprintf(stderr, "gpu_regrant: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
