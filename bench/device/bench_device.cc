#include "bench/device/bench_device.h"

#include <poll.h>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kALittle = uint64_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<device::Allocator>> OpenAllocator(
    const std::string& name) {
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "host:")) {
    const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(std::string(rest));
    if (!bytes.ok()) return bytes.status();
    return device::OpenHostAllocator({.capacity_bytes = *bytes});
  }
  absl::ConsumePrefix(&rest, "ipc:");
  return device::OpenVmmAllocator(std::string(rest));
}

absl::Status WaitForFree(device::Allocator* allocator, uint64_t bytes) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  for (;;) {
    const absl::StatusOr<uint64_t> now = allocator->FreeBytes();
    if (!now.ok()) return now.status();
    if (*now + kALittle >= bytes) return absl::OkStatus();
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError("freed memory did not come back");
    poll(nullptr, 0, 1);
  }
}

}  // namespace gmb::bench
