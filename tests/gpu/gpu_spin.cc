#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmb/client.h"
#include "proto/amount_text.h"
#include "tests/device/spin_kernel.h"

// A client that leases memory, starts a long kernel on it, says "spinning",
// and waits to be killed.
int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: gpu_spin SOCKET_DIR BYTES\n");
    return 2;
  }
  const absl::StatusOr<uint64_t> bytes = gmb::proto::ParseBytes(argv[2]);
  gmb::ClientOptions options;
  options.socket_dir = argv[1];
  auto client = gmb::Client::Connect(std::move(options));
  absl::Status status = bytes.status();
  status.Update(client.status());
  gmb::Lease lease;
  if (status.ok()) {
    auto acquired = (*client)->Acquire(*bytes);
    status = acquired.status();
    if (status.ok()) lease = *std::move(acquired);
  }
  if (status.ok())
    status = gmb::device::StartSpinKernel(lease.device(), lease.data());
  if (!status.ok()) {
    std::fprintf(stderr, "gpu_spin: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("spinning\n");
  std::fflush(stdout);
  for (;;) pause();
}
