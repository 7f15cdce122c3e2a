#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "device/devices.h"
#include "tests/device/remote_mapper.h"
#include "tests/device/spin_kernel.h"

// SIGKILL of a client while its kernel writes to its slabs: how soon the
// memory is back, and that a neighbour and the broker's side do not notice.
// Prints figures and PASS or FAIL; exit status 77 without a GPU.

namespace gmb::device {
namespace {

constexpr uint64_t kSlabBytes = uint64_t{1} << 30;
constexpr int kSlabs = 4;
constexpr int kRounds = 8;
constexpr uint64_t kToleranceBytes = uint64_t{64} << 20;
constexpr absl::Duration kLongest = absl::Seconds(1);

// In the client: starts the kernel on the range and does not wait for it.
absl::Status StartSpinning(const Mapper& mapper, MappedRange* range) {
  return StartSpinKernel(mapper.info().uuid, range->data());
}

struct Round {
  absl::Duration reaped;
  absl::Duration memory_back;
  absl::Duration created_again;
};

struct Slabs {
  std::vector<SlabKey> keys;
  std::vector<ShareableHandle> handles;
};

absl::StatusOr<Slabs> CreateSlabs(Allocator* allocator) {
  Slabs slabs;
  for (int i = 0; i < kSlabs; ++i) {
    absl::StatusOr<CreatedSlab> slab = allocator->Create(kSlabBytes);
    if (!slab.ok()) return slab.status();
    slabs.keys.push_back(slab->key);
    slabs.handles.push_back(std::move(slab->exported));
  }
  return slabs;
}

absl::Status DestroySlabs(Allocator* allocator, Slabs* slabs) {
  slabs->handles.clear();
  absl::Status status;
  for (const SlabKey key : slabs->keys) status.Update(allocator->Destroy(key));
  return status;
}

absl::Status MapSlabs(const Slabs& slabs, RemoteMapper* client) {
  absl::Status status = client->Reserve(kSlabs * kSlabBytes);
  for (const ShareableHandle& handle : slabs.handles) {
    status.Update(client->AddSlab(handle, kSlabBytes));
  }
  if (status.ok()) status = client->Map();
  return status;
}

// The neighbour sees the kernel's words change: it runs.
absl::Status CheckThatItRuns(RemoteMapper* neighbour) {
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<uint64_t> written =
        neighbour->CountOther(0, kSlabBytes / 1024, 0);
    if (!written.ok()) return written.status();
    if (*written != 0) return absl::OkStatus();
    poll(nullptr, 0, 5);
  }
  return absl::DeadlineExceededError("the kernel writes nothing");
}

// Waits until the kernel runs and only the client holds the slabs, kills it,
// and waits for the memory.
absl::StatusOr<Round> RunRound(Allocator* allocator, RemoteMapper* neighbour) {
  absl::StatusOr<std::unique_ptr<RemoteMapper>> client =
      RemoteMapper::Start(allocator->info());
  if (!client.ok()) return client.status();
  absl::StatusOr<uint64_t> before = allocator->FreeBytes();
  if (!before.ok()) return before.status();
  absl::StatusOr<Slabs> slabs = CreateSlabs(allocator);
  if (!slabs.ok()) return slabs.status();
  absl::Status status = MapSlabs(*slabs, client->get());
  if (status.ok()) status = MapSlabs(*slabs, neighbour);
  if (status.ok()) status = (*client)->CallHook();
  if (status.ok()) status = CheckThatItRuns(neighbour);
  status.Update(neighbour->Unmap());
  status.Update(DestroySlabs(allocator, &*slabs));
  if (!status.ok()) return status;

  Round round;
  const absl::Time killed = absl::Now();
  (*client)->Kill();
  round.reaped = absl::Now() - killed;
  for (;;) {
    absl::StatusOr<uint64_t> now = allocator->FreeBytes();
    if (!now.ok()) return now.status();
    if (*now + kToleranceBytes >= *before) break;
    if (absl::Now() > killed + absl::Seconds(20)) {
      return absl::DeadlineExceededError("the memory did not come back");
    }
    poll(nullptr, 0, 1);
  }
  round.memory_back = absl::Now() - killed;
  absl::StatusOr<Slabs> again = CreateSlabs(allocator);
  if (!again.ok()) return again.status();
  round.created_again = absl::Now() - killed;
  status = DestroySlabs(allocator, &*again);
  if (!status.ok()) return status;
  return round;
}

int Fail(const absl::Status& status) {
  std::printf("FAIL: %s\n", status.ToString().c_str());
  return 1;
}

int Run() {
  const CudaProbe probe = ProbeCuda();
  if (probe.gpus.empty()) {
    std::printf("SKIPPED, no GPU here: %s\n", probe.problem.c_str());
    return 77;
  }
  auto allocator = OpenVmmAllocator(probe.gpus[0].uuid);
  if (!allocator.ok()) return Fail(allocator.status());
  auto neighbour = RemoteMapper::Start((*allocator)->info());
  if (!neighbour.ok()) return Fail(neighbour.status());
  std::printf("%s, driver %s: SIGKILL while a kernel writes to %d GiB\n",
              probe.gpus[0].name.c_str(), probe.driver_version.c_str(), kSlabs);
  std::printf("%12s %12s %16s\n", "reaped ms", "back ms", "created again ms");
  absl::Duration longest;
  for (int i = 0; i < kRounds; ++i) {
    absl::StatusOr<Round> round = RunRound(allocator->get(), neighbour->get());
    if (!round.ok()) return Fail(round.status());
    std::printf("%12.1f %12.1f %16.1f\n",
                absl::ToDoubleMilliseconds(round->reaped),
                absl::ToDoubleMilliseconds(round->memory_back),
                absl::ToDoubleMilliseconds(round->created_again));
    longest = std::max(longest, round->created_again);
  }
  if (longest > kLongest) {
    return Fail(absl::DeadlineExceededError("memory was back too late"));
  }
  std::printf("PASS: back within %.1f ms\n",
              absl::ToDoubleMilliseconds(longest));
  return 0;
}

}  // namespace
}  // namespace gmb::device

int main(int argc, char** argv) {
  if (const auto status = gmb::device::RunIfRemoteMapper(
          argc, argv, gmb::device::StartSpinning)) {
    return *status;
  }
  return gmb::device::Run();
}
