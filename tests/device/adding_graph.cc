#include "tests/device/adding_graph.h"

#include <dlfcn.h>

#include <utility>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::device {
namespace {

constexpr unsigned kBlocks = 264;
constexpr unsigned kThreads = 256;

constexpr char kAddKernel[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 memory, .param .u64 words)
{
  .reg .pred %again;
  .reg .u32 %block, %width, %thread, %first, %blocks, %threads;
  .reg .u64 %start, %words, %index, %stride, %at, %value;
  ld.param.u64 %start, [memory];
  ld.param.u64 %words, [words];
  cvta.to.global.u64 %start, %start;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %first, %block, %width, %thread;
  mul.lo.u32 %threads, %blocks, %width;
  cvt.u64.u32 %index, %first;
  cvt.u64.u32 %stride, %threads;
STEP:
  setp.ge.u64 %again, %index, %words;
  @%again bra DONE;
  shl.b64 %at, %index, 3;
  add.u64 %at, %at, %start;
  ld.global.u64 %value, [%at];
  add.u64 %value, %value, %index;
  add.u64 %value, %value, 1;
  st.global.u64 [%at], %value;
  add.u64 %index, %index, %stride;
  bra STEP;
DONE:
  ret;
}
)";

// One call of the driver that only tests make; `name` is what it exports.
template <typename Function, typename... Arguments>
absl::Status Call(const CudaDriver& driver, const char* name,
                  Arguments... arguments) {
  static void* const kLibrary = dlopen("libcuda.so.1", RTLD_NOW);
  auto* const function =
      kLibrary == nullptr ? nullptr
                          : reinterpret_cast<Function*>(dlsym(kLibrary, name));
  if (function == nullptr)
    return absl::FailedPreconditionError("this driver has no graphs");
  return driver.Check(function(arguments...), name);
}
#define GMB_CALL(name, ...) \
  Call<decltype(name)>(context_->driver(), #name, __VA_ARGS__)

}  // namespace

absl::StatusOr<AddingGraph> AddingGraph::Capture(const std::string& uuid,
                                                 void* memory, uint64_t bytes) {
  const auto driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const auto found = FindCudaDevice(**driver, uuid);
  if (!found.ok()) return found.status();
  auto context = CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return context.status();
  AddingGraph graph(*std::move(context));
  const ScopedContext scope(*graph.context_);
  absl::Status status = scope.status();
  CUfunction kernel = nullptr;
  if (status.ok()) status = graph.Load(&kernel);
  if (status.ok()) status = graph.Record(kernel, memory, bytes);
  if (!status.ok()) return status;
  return graph;
}

absl::Status AddingGraph::Load(CUfunction* kernel) {
  CUmodule module = nullptr;
  if (absl::Status loaded = GMB_CALL(cuModuleLoadData, &module, kAddKernel);
      !loaded.ok()) {
    return loaded;
  }
  if (absl::Status found = GMB_CALL(cuModuleGetFunction, kernel, module, "add");
      !found.ok()) {
    return found;
  }
  return GMB_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
}

absl::Status AddingGraph::Record(CUfunction kernel, void* memory,
                                 uint64_t bytes) {
  absl::Status status = Call<decltype(cuStreamBeginCapture)>(
      context_->driver(), "cuStreamBeginCapture_v2", stream_,
      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (!status.ok()) return status;
  uint64_t words = bytes / 8;
  void* arguments[] = {&memory, &words};
  status = GMB_CALL(cuLaunchKernel, kernel, kBlocks, 1U, 1U, kThreads, 1U, 1U,
                    0U, stream_, arguments, nullptr);
  CUgraph graph = nullptr;
  status.Update(GMB_CALL(cuStreamEndCapture, stream_, &graph));
  if (!status.ok()) return status;
  return Call<decltype(cuGraphInstantiateWithFlags)>(
      context_->driver(), "cuGraphInstantiateWithFlags", &graph_, graph, 0ULL);
}

absl::Status AddingGraph::Replay() {
  const ScopedContext scope(*context_);
  absl::Status status = scope.status();
  if (status.ok()) status = GMB_CALL(cuGraphLaunch, graph_, stream_);
  if (status.ok()) status = GMB_CALL(cuStreamSynchronize, stream_);
  return status;
}

}  // namespace gmb::device
