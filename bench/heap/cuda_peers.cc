#include "bench/heap/cuda_peers.h"

#include <dlfcn.h>

#include <utility>

#include "absl/status/status.h"
#include "device/cuda/abi/driver_api.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::bench {
namespace {

// Functions that a pool of the driver's needs and device/ does not use.
struct PoolFunctions {
  decltype(&::cuMemPoolCreate) create = nullptr;
  decltype(&::cuMemPoolDestroy) destroy = nullptr;
  decltype(&::cuMemPoolSetAttribute) set = nullptr;
  decltype(&::cuMemPoolGetAttribute) get = nullptr;
  CUresult (*allocate)(CUdeviceptr*, size_t, CUmemoryPool, CUstream) = nullptr;
  CUresult (*free)(CUdeviceptr, CUstream) = nullptr;
  std::string name = "cuMemAllocFromPoolAsync";
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// cudaMallocFromPoolAsync is cudaMallocAsync with another pool than the
// device's own; its error 0 is the driver's.
void PreferRuntime(PoolFunctions* functions) {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12",
                           "/usr/local/cuda/lib64/libcudart.so"}) {
    void* const library = dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    PoolFunctions of_runtime = *functions;
    if (!Find(library, "cudaMallocFromPoolAsync", &of_runtime.allocate) ||
        !Find(library, "cudaFreeAsync", &of_runtime.free)) {
      continue;
    }
    of_runtime.name = "cudaMallocAsync";
    *functions = of_runtime;
    return;
  }
}

bool LoadPoolFunctions(PoolFunctions* functions) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr ||
      !Find(driver, "cuMemPoolCreate", &functions->create) ||
      !Find(driver, "cuMemPoolDestroy", &functions->destroy) ||
      !Find(driver, "cuMemPoolSetAttribute", &functions->set) ||
      !Find(driver, "cuMemPoolGetAttribute", &functions->get) ||
      !Find(driver, "cuMemAllocFromPoolAsync", &functions->allocate) ||
      !Find(driver, "cuMemFreeAsync", &functions->free)) {
    return false;
  }
  PreferRuntime(functions);
  return true;
}

// The driver's stream-ordered allocator, which keeps what it has.
class PoolPeer final : public Peer {
 public:
  PoolPeer(PoolFunctions functions, CUmemoryPool pool)
      : functions_(std::move(functions)), pool_(pool) {}
  PoolPeer(const PoolPeer&) = delete;
  PoolPeer& operator=(const PoolPeer&) = delete;
  ~PoolPeer() override { functions_.destroy(pool_); }

  std::string name() const override { return functions_.name; }
  void* Allocate(uint64_t bytes, void* stream) override {
    CUdeviceptr address = 0;
    const CUresult result = functions_.allocate(&address, bytes, pool_,
                                                static_cast<CUstream>(stream));
    if (result != CUDA_SUCCESS) return nullptr;
    return reinterpret_cast<void*>(address);  // NOLINT: the driver's type
  }
  void Free(void* address, uint64_t /*bytes*/, void* stream) override {
    functions_.free(reinterpret_cast<CUdeviceptr>(address),
                    static_cast<CUstream>(stream));
  }
  uint64_t PeakReservedBytes() override {
    cuuint64_t bytes = 0;
    functions_.get(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &bytes);
    return bytes;
  }

 private:
  const PoolFunctions functions_;
  CUmemoryPool pool_;
};

struct Gpu {
  const device::CudaDriver* driver;
  CUdevice device;
  std::shared_ptr<const device::CudaContext> context;
};

absl::StatusOr<Gpu> FindGpu(const std::string& uuid) {
  const auto driver = device::CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const auto found = device::FindCudaDevice(**driver, uuid);
  if (!found.ok()) return found.status();
  auto context = device::CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return context.status();
  return Gpu{*driver, found->device, *std::move(context)};
}

class CudaStreams final : public Streams {
 public:
  explicit CudaStreams(Gpu gpu) : gpu_(std::move(gpu)), scope_(*gpu_.context) {}
  CudaStreams(const CudaStreams&) = delete;
  CudaStreams& operator=(const CudaStreams&) = delete;
  ~CudaStreams() override {
    for (CUstream stream : streams_) {
      gpu_.driver->cuStreamSynchronize(stream);
      gpu_.driver->cuStreamDestroy_v2(stream);
    }
  }
  absl::Status Make(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      CUstream stream = nullptr;
      absl::Status made = GMB_CUDA(*gpu_.driver, cuStreamCreate, &stream,
                                   CU_STREAM_NON_BLOCKING);
      if (!made.ok()) return made;
      streams_.push_back(stream);
    }
    return absl::OkStatus();
  }
  void* operator[](uint64_t number) const override {
    return streams_.at(number);
  }
  std::shared_ptr<void> InThread() const override {
    return std::make_shared<device::ScopedContext>(*gpu_.context);
  }

 private:
  const Gpu gpu_;
  const device::ScopedContext scope_;
  std::vector<CUstream> streams_;
};

}  // namespace

std::vector<std::unique_ptr<Peer>> MakeCudaPeers(const std::string& uuid) {
  std::vector<std::unique_ptr<Peer>> peers;
  const absl::StatusOr<Gpu> gpu = FindGpu(uuid);
  PoolFunctions functions;
  if (!gpu.ok() || !LoadPoolFunctions(&functions)) return peers;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = gpu->device;
  CUmemoryPool pool = nullptr;
  cuuint64_t keep = ~cuuint64_t{0};
  if (functions.create(&pool, &properties) != CUDA_SUCCESS ||
      functions.set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) !=
          CUDA_SUCCESS) {
    return peers;
  }
  peers.push_back(std::make_unique<PoolPeer>(std::move(functions), pool));
  return peers;
}

absl::StatusOr<std::unique_ptr<Streams>> MakeCudaStreams(
    const std::string& uuid, uint64_t count) {
  absl::StatusOr<Gpu> gpu = FindGpu(uuid);
  if (!gpu.ok()) return gpu.status();
  auto streams = std::make_unique<CudaStreams>(*std::move(gpu));
  if (absl::Status made = streams->Make(count); !made.ok()) return made;
  return streams;
}

}  // namespace gmb::bench
