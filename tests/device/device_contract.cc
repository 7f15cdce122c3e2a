#include "tests/device/device_contract.h"

#include <poll.h>

#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"

namespace gmb::device {

std::string KindName(const testing::TestParamInfo<DeviceKind>& info) {
  switch (info.param) {
    case DeviceKind::kVmm:
      return "vmm";
    case DeviceKind::kIpc:
      return "ipc";
    case DeviceKind::kHost:
      return "host";
  }
  return "unknown";
}

void DeviceContract::SetUp() {
  if (!is_host()) {
    const CudaProbe probe = ProbeCuda();
    if (probe.gpus.empty()) {
      GTEST_SKIP() << "NOT TESTED, no GPU here: " << probe.problem;
    }
    const char* const chosen = std::getenv("GMB_TEST_GPU");
    gpu_ = chosen != nullptr ? chosen : probe.gpus[0].uuid;
  }
  absl::StatusOr<std::unique_ptr<Allocator>> allocator = OpenAllocator();
  ASSERT_OK(allocator);
  allocator_ = *std::move(allocator);
}

absl::StatusOr<std::unique_ptr<Allocator>> DeviceContract::OpenAllocator() {
  if (is_host()) return OpenHostAllocator({.capacity_bytes = 1024 * kMiB});
  return is_ipc() ? OpenIpcAllocator(gpu_) : OpenVmmAllocator(gpu_);
}

std::unique_ptr<RemoteMapper> DeviceContract::StartClient() {
  absl::StatusOr<std::unique_ptr<RemoteMapper>> client =
      RemoteMapper::Start(allocator_->info());
  EXPECT_OK(client);
  return client.ok() ? *std::move(client) : nullptr;
}

absl::StatusOr<DeviceContract::Slab> DeviceContract::Create(uint64_t bytes) {
  absl::StatusOr<CreatedSlab> created = allocator_->Create(bytes);
  if (!created.ok()) return created.status();
  return Slab{.key = created->key,
              .bytes = bytes,
              .handle = std::move(created->exported)};
}

absl::Status DeviceContract::Destroy(Slab* slab) {
  slab->handle = ShareableHandle();
  return allocator_->Destroy(slab->key);
}

absl::Status DeviceContract::Lease(RemoteMapper* client,
                                   const std::vector<Slab*>& slabs,
                                   bool keep_fds, Protection protection) {
  if (client == nullptr) return absl::UnavailableError("no client");
  uint64_t bytes = 0;
  for (const Slab* slab : slabs) bytes += slab->bytes;
  if (absl::Status status = client->Reserve(bytes, protection); !status.ok()) {
    return status;
  }
  for (const Slab* slab : slabs) {
    absl::Status status = client->AddSlab(slab->handle, slab->bytes, keep_fds);
    if (!status.ok()) return status;
  }
  return client->Map();
}

uint64_t DeviceContract::FreeBytes() {
  absl::StatusOr<uint64_t> free_bytes = allocator_->FreeBytes();
  EXPECT_OK(free_bytes);
  return free_bytes.ok() ? *free_bytes : 0;
}

bool DeviceContract::WaitForFree(uint64_t bytes) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (FreeBytes() + tolerance() < bytes) {
    if (absl::Now() > deadline) return false;
    poll(nullptr, 0, 1);  // nothing announces it: ask again
  }
  return true;
}

}  // namespace gmb::device
