#include "bench/device/peers.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::bench {
namespace {

class AnonymousMemory final : public Peer {
 public:
  std::string allocate_name() const override { return "mmap"; }
  std::string free_name() const override { return "munmap"; }
  absl::StatusOr<Times> Run(uint64_t bytes) override {
    const absl::Time start = absl::Now();
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const absl::Time allocated = absl::Now();
    if (memory == MAP_FAILED) return absl::ResourceExhaustedError("mmap");
    munmap(memory, bytes);
    return Times{allocated - start, absl::Now() - allocated};
  }
};

class DriverMemory final : public Peer {
 public:
  explicit DriverMemory(std::shared_ptr<const device::CudaContext> context)
      : context_(std::move(context)) {}
  std::string allocate_name() const override { return "cuMemAlloc"; }
  std::string free_name() const override { return "cuMemFree"; }
  absl::StatusOr<Times> Run(uint64_t bytes) override {
    const device::ScopedContext scope(*context_);
    const device::CudaDriver& driver = context_->driver();
    CUdeviceptr memory = 0;
    const absl::Time start = absl::Now();
    absl::Status status = GMB_CUDA(driver, cuMemAlloc_v2, &memory, bytes);
    const absl::Time allocated = absl::Now();
    if (status.ok()) status = GMB_CUDA(driver, cuMemFree_v2, memory);
    if (!status.ok()) return status;
    return Times{allocated - start, absl::Now() - allocated};
  }

 private:
  const std::shared_ptr<const device::CudaContext> context_;
};

class RuntimeMemory final : public Peer {
 public:
  static std::unique_ptr<Peer> Find(int ordinal) {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12",
                             "/usr/local/cuda/lib64/libcudart.so"}) {
      void* const library = dlopen(name, RTLD_NOW);
      if (library == nullptr) continue;
      auto peer = std::make_unique<RuntimeMemory>();
      peer->malloc_ = reinterpret_cast<int (*)(void**, size_t)>(
          dlsym(library, "cudaMalloc"));
      peer->free_ =
          reinterpret_cast<int (*)(void*)>(dlsym(library, "cudaFree"));
      auto* const set_device =
          reinterpret_cast<int (*)(int)>(dlsym(library, "cudaSetDevice"));
      if (peer->malloc_ == nullptr || peer->free_ == nullptr ||
          set_device == nullptr || set_device(ordinal) != 0) {
        continue;
      }
      return peer;
    }
    return nullptr;
  }
  std::string allocate_name() const override { return "cudaMalloc"; }
  std::string free_name() const override { return "cudaFree"; }
  absl::StatusOr<Times> Run(uint64_t bytes) override {
    void* memory = nullptr;
    const absl::Time start = absl::Now();
    if (malloc_(&memory, bytes) != 0) {
      return absl::ResourceExhaustedError("cudaMalloc failed");
    }
    const absl::Time allocated = absl::Now();
    if (free_(memory) != 0) return absl::InternalError("cudaFree failed");
    return Times{allocated - start, absl::Now() - allocated};
  }

 private:
  int (*malloc_)(void**, size_t) = nullptr;
  int (*free_)(void*) = nullptr;
};

std::vector<std::unique_ptr<Peer>> FindCudaPeers(const std::string& uuid) {
  std::vector<std::unique_ptr<Peer>> peers;
  const auto driver = device::CudaDriver::Get();
  if (!driver.ok()) return peers;
  const auto found = device::FindCudaDevice(**driver, uuid);
  if (!found.ok()) return peers;
  auto context = device::CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return peers;
  peers.push_back(std::make_unique<DriverMemory>(*std::move(context)));
  std::unique_ptr<Peer> runtime = RuntimeMemory::Find(found->device);
  if (runtime != nullptr) peers.push_back(std::move(runtime));
  return peers;
}

}  // namespace

std::vector<std::unique_ptr<Peer>> FindPeers(const device::DeviceInfo& info) {
  if (info.kind != device::DeviceKind::kHost) return FindCudaPeers(info.uuid);
  std::vector<std::unique_ptr<Peer>> peers;
  if (info.kind == device::DeviceKind::kHost) {
    peers.push_back(std::make_unique<AnonymousMemory>());
  }
  return peers;
}

}  // namespace gmb::bench
