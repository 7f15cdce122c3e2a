// A heap on a real GPU: memory goes from stream to stream when events say so,
// captures have theirs, and nothing that the heap does breaks a capture.
//
//   gpu_heap SOCKET_DIR
//
// Prints a line for each check; ends with the number of those that failed.
#include <dlfcn.h>

#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "gmb/client.h"
#include "gmb/heap.h"
#include "tests/device/driver_of_programs.h"

namespace gmb {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kChunk = 64 * kMiB;
constexpr size_t kMostAhead = 4;

int failed = 0;
void Check(const char* what, bool holds) {
  std::printf("%s  %s\n", holds ? "PASS" : "FAIL", what);
  std::fflush(stdout);
  if (!holds) ++failed;
}

CUdeviceptr Pointer(void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

// Functions of the driver that device/ has no use for.
struct Functions {
  decltype(&::cuLaunchHostFunc) launch_host_function;
  decltype(&::cuMemsetD8Async) set;
  decltype(&::cuMemcpyDtoDAsync) copy;
  decltype(&::cuStreamBeginCapture) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuGraphInstantiateWithFlags) instantiate;
  decltype(&::cuGraphLaunch) launch;
  decltype(&::cuGraphExecDestroy) destroy_exec;
  decltype(&::cuGraphDestroy) destroy_graph;
  CUresult (*create_context)(CUcontext*, unsigned, CUdevice);
  decltype(&::cuCtxDestroy) destroy_context;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool Load(Functions* f) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library != nullptr &&
         Find(library, "cuLaunchHostFunc", &f->launch_host_function) &&
         Find(library, "cuMemsetD8Async", &f->set) &&
         Find(library, "cuMemcpyDtoDAsync_v2", &f->copy) &&
         Find(library, "cuStreamBeginCapture_v2", &f->begin_capture) &&
         Find(library, "cuStreamEndCapture", &f->end_capture) &&
         Find(library, "cuGraphInstantiateWithFlags", &f->instantiate) &&
         Find(library, "cuGraphLaunch", &f->launch) &&
         Find(library, "cuGraphExecDestroy", &f->destroy_exec) &&
         Find(library, "cuGraphDestroy", &f->destroy_graph) &&
         Find(library, "cuCtxCreate_v2", &f->create_context) &&
         Find(library, "cuCtxDestroy_v2", &f->destroy_context);
}

class Trial {
 public:
  Trial(const device::CudaDriver* driver, const Functions& functions,
        Heap* heap)
      : driver_(*driver), f_(functions), heap_(*heap) {
    for (CUstream& stream : streams_)
      driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    for (CUstream stream : streams_) driver_.cuStreamDestroy_v2(stream);
  }

  void SameStream();
  void AnotherStream();
  void Recorded();
  void Detached();
  void OtherContext();
  void Captured();
  void Streams();

 private:
  // Keeps a stream busy until it is opened.
  class Block {
   public:
    Block(const Functions& f, CUstream stream) {
      f.launch_host_function(
          stream, [](void* self) { static_cast<Block*>(self)->Wait(); }, this);
    }
    void Open() { open_.set_value(); }

   private:
    void Wait() { open_.get_future().wait(); }
    std::promise<void> open_;
  };

  void* Get(uint64_t bytes, CUstream stream) {
    const absl::StatusOr<void*> got = heap_.Allocate(bytes, stream);
    if (!got.ok()) std::printf("      %s\n", got.status().ToString().c_str());
    return got.value_or(nullptr);
  }
  bool Free(void* address) { return heap_.Free(address).ok(); }
  void Synchronize() {
    for (CUstream stream : streams_) driver_.cuStreamSynchronize(stream);
  }
  bool Holds(void* address, uint64_t bytes, unsigned char value) const {
    std::vector<unsigned char> copy(bytes);
    if (driver_.cuMemcpyDtoH_v2(copy.data(), Pointer(address), bytes) !=
        CUDA_SUCCESS) {
      return false;
    }
    for (unsigned char byte : copy) {
      if (byte != value) return false;
    }
    return true;
  }
  CUgraph Capture(GraphPool& pool, void** output);
  void DisturbFromAnotherThread();

  const device::CudaDriver& driver_;
  const Functions f_;
  Heap& heap_;
  CUstream streams_[3] = {};
};

void Trial::SameStream() {
  Block block(f_, streams_[0]);
  void* const first = Get(kChunk, streams_[0]);
  f_.set(Pointer(first), 1, kChunk, streams_[0]);
  Check("a free is a matter of the stream's order", Free(first));
  void* const again = Get(kChunk, streams_[0]);
  Check("the same stream has it again at once", again == first);
  f_.set(Pointer(again), 2, kChunk, streams_[0]);
  block.Open();
  Synchronize();
  Check("and what it wrote last is there", Holds(again, kChunk, 2));
  Free(again);
}

void Trial::AnotherStream() {
  void* const first = Get(kChunk, streams_[0]);
  Block block(f_, streams_[0]);
  f_.set(Pointer(first), 3, kChunk, streams_[0]);
  Free(first);
  void* const other = Get(kChunk, streams_[1]);
  Check("another stream gets other memory while the first is busy",
        other != nullptr && other != first);
  block.Open();
  Synchronize();
  // Memory that the heap has ahead of need may come first.
  std::vector<void*> later;
  do {
    later.push_back(Get(kChunk, streams_[1]));
  } while (later.back() != first && later.size() < kMostAhead);
  Check("and the first one's when that is done", later.back() == first);
  Free(other);
  for (void* address : later) Free(address);
}

void Trial::Recorded() {
  void* const block = Get(kChunk, streams_[0]);
  Check("a stream is recorded", heap_.RecordStream(block, streams_[1]).ok());
  Block busy(f_, streams_[1]);
  Free(block);
  Check("the block is held", heap_.statistics().held_bytes == kChunk);
  void* const other = Get(kChunk, streams_[0]);
  Check("nobody has it while the other stream is busy", other != block);
  busy.Open();
  Synchronize();
  Free(other);
  heap_.Trim(1);  // looks
  Check("it comes back when that is done", heap_.statistics().held_bytes == 0);
}

void Trial::Detached() {
  CUstream stream = nullptr;
  driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  void* const block = Get(kChunk, stream);
  f_.set(Pointer(block), 4, kChunk, stream);
  Free(block);
  Check("a stream is detached", heap_.DetachStream(stream).ok());
  driver_.cuStreamDestroy_v2(stream);
  void* const other = Get(kChunk, streams_[2]);
  Check("its memory is another's", other != nullptr);
  Free(other);
}

// The driver takes no event of the heap's context in its streams.
void Trial::OtherContext() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  driver_.cuDeviceGet(&device, 0);
  Check("another context is made",
        f_.create_context(&context, 0, device) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  void* const block = Get(kChunk, streams_[0]);
  Check("a stream of another context is recorded",
        heap_.RecordStream(block, stream).ok());
  Block busy(f_, stream);
  Free(block);
  Check("the block is held for it", heap_.statistics().held_bytes == kChunk);
  busy.Open();
  Check("it is detached", heap_.DetachStream(stream).ok());
  Check("the block comes back", heap_.statistics().held_bytes == 0);
  f_.destroy_context(context);
}

CUgraph Trial::Capture(GraphPool& pool, void** output) {
  CUgraph graph = nullptr;
  Check("the pool begins", pool.Begin(streams_[0]).ok());
  Check("the capture begins",
        f_.begin_capture(streams_[0], CU_STREAM_CAPTURE_MODE_GLOBAL) ==
            CUDA_SUCCESS);
  void* const temporary = Get(4 * kMiB, streams_[0]);
  f_.set(Pointer(temporary), 7, 4 * kMiB, streams_[0]);
  *output = Get(4 * kMiB, streams_[0]);
  f_.copy(Pointer(*output), Pointer(temporary), 4 * kMiB, streams_[0]);
  Free(temporary);
  Check("more than is prepared is refused",
        !heap_.Allocate(64 * kMiB, streams_[0]).ok());
  DisturbFromAnotherThread();
  Check(
      "the capture is whole",
      f_.end_capture(streams_[0], &graph) == CUDA_SUCCESS && graph != nullptr);
  Check("the pool ends", pool.End(streams_[0]).ok());
  return graph;
}

// Another thread uses the heap meanwhile, as it may.
void Trial::DisturbFromAnotherThread() {
  std::thread([this] {
    void* const large = Get(3 * kChunk, streams_[1]);  // grows
    Check("others grow during the capture", large != nullptr);
    heap_.RecordStream(large, streams_[2]).IgnoreError();
    Check("and free what several streams used", Free(large));
    Check("and nothing is given back", heap_.Trim(~uint64_t{0}) == 0);
  }).join();
}

void Trial::Captured() {
  auto pool = heap_.PrepareGraphs(16 * kMiB);
  Check("a pool is prepared", pool.ok());
  if (!pool.ok()) return;
  void* output = nullptr;
  CUgraph graph = Capture(**pool, &output);
  CUgraphExec exec = nullptr;
  Check("the graph is instantiated",
        f_.instantiate(&exec, graph, 0) == CUDA_SUCCESS);
  std::vector<void*> others;
  for (int i = 0; i < 32; ++i) {
    others.push_back(Get(4 * kMiB, streams_[0]));
    f_.set(Pointer(others.back()), 9, 4 * kMiB, streams_[0]);
  }
  for (int i = 0; i < 3; ++i) f_.launch(exec, streams_[0]);
  Synchronize();
  Check("its output is right", Holds(output, 4 * kMiB, 7));
  bool untouched = true;
  for (void* other : others) untouched &= Holds(other, 4 * kMiB, 9);
  Check("and nobody else's bytes were written over", untouched);
  for (void* other : others) Free(other);
  Free(output);
  f_.destroy_exec(exec);
  f_.destroy_graph(graph);
  pool->reset();
  Check("afterwards all is given back",
        heap_.Trim(~uint64_t{0}) > 0 && heap_.statistics().leases == 0);
}

void Trial::Streams() {
  Check("cudaStreamPerThread is refused",
        !heap_.Allocate(1, CU_STREAM_PER_THREAD).ok());
  void* const block = Get(kMiB, CU_STREAM_LEGACY);
  Check("the legacy stream has two names",
        heap_.Free(block, nullptr).ok() && Get(kMiB, nullptr) == block);
  Free(block);
}

int Run(const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = Client::Connect(std::move(options));
  const auto driver = device::CudaDriver::Get();
  Functions functions{};
  if (!client.ok() || !driver.ok() || !Load(&functions)) {
    std::fprintf(stderr, "gpu_heap: %s; %s\n",
                 client.status().ToString().c_str(),
                 driver.status().ToString().c_str());
    return 1;
  }
  const auto found =
      device::FindCudaDevice(**driver, (*client)->devices().front().uuid);
  if (!found.ok()) return 1;
  const auto context = device::CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return 1;
  const device::ScopedContext scope(**context);
  HeapOptions heap_options;
  heap_options.most_growth_bytes = kChunk;
  auto heap = Heap::Create(client->get(), heap_options);
  Check("a heap is made", heap.ok());
  if (!heap.ok()) return failed;
  Trial trial(*driver, functions, heap->get());
  trial.SameStream();
  trial.AnotherStream();
  trial.Recorded();
  trial.Detached();
  trial.OtherContext();
  trial.Streams();
  trial.Captured();
  return failed;
}

}  // namespace
}  // namespace gmb

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_heap SOCKET_DIR\n");
    return 2;
  }
  return gmb::Run(argv[1]);
}
