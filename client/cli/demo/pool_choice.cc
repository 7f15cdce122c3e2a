// The demo: on which memory it runs, and how much of it.
#include "client/cli/demo/pool_choice.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"
#include "proto/amount_text.h"

namespace gmb::cli {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMostHostBytes = kGiB;
// Every byte is written and read several times: more would take minutes.
constexpr uint64_t kMostGpuBytes = 8 * kGiB;
// Twentieths of the pool are leased, in steps of 2 MiB. A multiple, so that a
// guarantee of three twentieths is that and no more.
constexpr uint64_t kSlabStepBytes = 2 * kMiB;
static_assert(kDemoStepBytes == 20 * kSlabStepBytes);

// Of the pool: as much as is evicted in the play, and the rest of that
// tenant's memory, which reserves its room as well (burst_act.h).
constexpr uint64_t kHostPoolTwentieths = 8;
// So much of the memory available is left for everything else: the broker
// takes no host pool that is larger than fifteen sixteenths of it.
constexpr uint64_t kAvailableParts = 16;

constexpr absl::string_view kHost = "host:";

uint64_t RoundDown(uint64_t bytes) {
  return bytes / kDemoStepBytes * kDemoStepBytes;
}

std::string MiBText(uint64_t bytes) {
  return absl::StrCat(bytes / kMiB, "MiB");
}

uint64_t HostPoolFor(uint64_t pool_bytes) {
  const uint64_t bytes = pool_bytes / 20 * kHostPoolTwentieths;
  return (bytes + kSlabStepBytes - 1) / kSlabStepBytes * kSlabStepBytes;
}

// The largest pool whose host pool fits in `host_bytes`.
uint64_t PoolForHostPool(uint64_t host_bytes) {
  return host_bytes / kHostPoolTwentieths * 20;
}

uint64_t Usable(uint64_t available) {
  return available / kAvailableParts * (kAvailableParts - 1);
}

// Null when this process does not see it; the broker says why.
const Device* FindGpu(const std::string& name,
                      const std::vector<Device>& gpus) {
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].uuid == name || absl::StrCat("cuda:", i) == name)
      return &gpus[i];
  }
  return nullptr;
}

absl::Status TooLittle(uint64_t available) {
  return absl::FailedPreconditionError(absl::StrCat(
      "too little memory is available for the demo, it takes a pool of ",
      MiBText(kDemoStepBytes),
      " and a host pool beside it: free some: available=",
      SizeText(available)));
}

// Host memory is needed too, for what leaves the GPU: half of what is
// available, at most.
absl::StatusOr<PoolChoice> Gpu(const std::string& name, const Device* gpu,
                               uint64_t available) {
  const uint64_t total = gpu == nullptr ? kMostGpuBytes * 4 : gpu->total_bytes;
  const uint64_t pool = RoundDown(std::min(
      {kMostGpuBytes, total / 4, PoolForHostPool(Usable(available) / 2)}));
  if (pool == 0) return TooLittle(available);
  return PoolChoice{.broker_flags = {"--device", name, "--pool", MiBText(pool),
                                     "--host-pool", MiBText(HostPoolFor(pool))},
                    .why = absl::StrCat(SizeText(pool), " of ",
                                        gpu == nullptr ? name : gpu->name)};
}

absl::StatusOr<PoolChoice> Host(uint64_t asked, uint64_t available,
                                const std::string& why) {
  const uint64_t bytes = RoundDown(asked);
  if (bytes == 0) return TooLittle(available);
  const uint64_t host_pool = HostPoolFor(bytes);
  if (bytes > available || host_pool > Usable(available - bytes)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "less memory is available than --device asks for, and the host pool "
        "beside it: asked=",
        SizeText(bytes), " host_pool=", SizeText(host_pool),
        " available=", SizeText(available)));
  }
  return PoolChoice{
      .broker_flags = {"--device", absl::StrCat("host:", MiBText(bytes)),
                       "--host-pool", MiBText(host_pool)},
      .why = absl::StrCat(SizeText(bytes), " of host memory", why)};
}

std::optional<uint64_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number))
    return std::nullopt;  // "max"
  return number;
}

uint64_t MachineAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return kMostHostBytes;
}

}  // namespace

uint64_t AvailableHostBytes() {
  uint64_t available = MachineAvailableBytes();
  const std::optional<uint64_t> most = ReadNumber("/sys/fs/cgroup/memory.max");
  const std::optional<uint64_t> used =
      ReadNumber("/sys/fs/cgroup/memory.current");
  if (most.has_value() && used.has_value()) {
    available = std::min(available, *most > *used ? *most - *used : 0);
  }
  return available;
}

absl::StatusOr<PoolChoice> ChoosePool(const std::string& device,
                                      const internal::DeviceProbe& probe,
                                      uint64_t available_host_bytes) {
  GMB_RETURN_IF_ERROR(CheckPoolName(device));
  absl::string_view size = device;
  if (absl::ConsumePrefix(&size, kHost)) {
    GMB_ASSIGN_OR_RETURN(const uint64_t bytes, proto::ParseBytes(size));
    return Host(bytes, available_host_bytes, "");
  }
  if (device != "auto")
    return Gpu(device, FindGpu(device, probe.gpus), available_host_bytes);
  if (probe.problem.empty() && !probe.gpus.empty()) {
    return Gpu(probe.gpus.front().uuid, &probe.gpus.front(),
               available_host_bytes);
  }
  return Host(std::min(kMostHostBytes, available_host_bytes / 2),
              available_host_bytes,
              probe.machine_has_gpu
                  ? absl::StrCat(", as this machine's GPU cannot be used: ",
                                 probe.problem.empty()
                                     ? "the driver shows it to no process here"
                                     : probe.problem)
                  : ", as this machine shows no GPU");
}

}  // namespace gmb::cli
