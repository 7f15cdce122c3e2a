#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/devices.h"

// A process that takes device memory past the broker and keeps it until it is
// killed: `fill` takes what a cuMemAlloc gets, `race` goes on trying to take
// what comes free between a destroy and the next create; `race-bare` without a
// CUDA context, which the driver may not list among a GPU's users.
namespace gmb::device {
namespace {

constexpr int kSkipped = 77;
constexpr uint64_t kChunkBytes = uint64_t{64} << 20;
constexpr uint64_t kSmallestBytes = uint64_t{2} << 20;

void Say(const char* word, uint64_t bytes) {
  std::printf("%s %llu\n", word, static_cast<unsigned long long>(bytes));
  std::fflush(stdout);
}

absl::StatusOr<uint64_t> Fill(const CudaDriver& driver,
                              const CudaContext& context) {
  const ScopedContext scope(context);
  uint64_t taken = 0;
  for (uint64_t chunk = kChunkBytes; chunk >= kSmallestBytes;) {
    CUdeviceptr memory = 0;
    const CUresult result = driver.cuMemAlloc_v2(&memory, chunk);
    if (result == CUDA_SUCCESS) {
      taken += chunk;
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      chunk /= 2;
    } else {
      return driver.Check(result, "cuMemAlloc");
    }
  }
  return taken;
}

bool TakeChunk(const CudaDriver& driver, int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  CUmemGenericAllocationHandle handle = 0;
  return driver.cuMemCreate(&handle, kChunkBytes, &properties, 0) ==
         CUDA_SUCCESS;
}

void Race(const CudaDriver& driver, int ordinal, absl::Duration time) {
  uint64_t rest = 0;
  while (TakeChunk(driver, ordinal)) rest += kChunkBytes;
  Say("rest", rest);
  uint64_t won = 0;
  const absl::Time end = absl::Now() + time;
  for (absl::Time said = absl::Now(); absl::Now() < end;) {
    if (TakeChunk(driver, ordinal)) won += kChunkBytes;
    if (absl::Now() - said < absl::Seconds(1)) continue;
    said = absl::Now();
    Say("won", won);
  }
  Say("raced", won);
}

absl::Status Steal(const std::string& mode, int seconds) {
  const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, "cuda:0");
  if (!device.ok()) return device.status();
  if (mode == "race-bare") {
    Race(**driver, device->device, absl::Seconds(seconds));
    for (;;) pause();
  }
  const auto context = CudaContext::Retain(*driver, device->device);
  if (!context.ok()) return context.status();
  if (mode == "race") {
    Race(**driver, device->device, absl::Seconds(seconds));
    for (;;) pause();
  }
  const absl::StatusOr<uint64_t> taken = Fill(**driver, **context);
  if (!taken.ok()) return taken.status();
  Say("taken", *taken);
  for (;;) pause();
}

}  // namespace
}  // namespace gmb::device

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  int seconds = 0;
  if (!(mode == "fill" && argc == 2) &&
      !((mode == "race" || mode == "race-bare") && argc == 3 &&
        absl::SimpleAtoi(argv[2], &seconds))) {
    std::fprintf(stderr,
                 "usage: gpu_thief fill | gpu_thief race|race-bare SECONDS\n");
    return 2;
  }
  if (const auto probe = gmb::device::ProbeCuda(); probe.gpus.empty()) {
    std::printf("SKIPPED, no GPU here: %s\n", probe.problem.c_str());
    return gmb::device::kSkipped;
  }
  const absl::Status status = gmb::device::Steal(mode, seconds);
  std::fprintf(stderr, "gpu_thief: %s\n", status.ToString().c_str());
  return 1;
}
