// A graph that the GPU launches, instantiated before the memory left. A request
// launches one graph, whose kernel launches the other ones: each adds to all of
// the memory. At DIR/chain a graph launches itself again and again for three
// seconds, in which the host calls nothing.
//   gate_device_graph DIR
#include <cuda_runtime.h>

#include <cstdint>

#include "gate_requests.cuh"

namespace {

using Sum = unsigned long long;

constexpr size_t kWords = size_t{1} << 27;
constexpr uint64_t kChainNs = 3000000000;

// Kept on the GPU between launches; it leaves with the rest.
struct State {
  uint64_t chain_until;
  unsigned chained;
  cudaGraphExec_t add;
  cudaGraphExec_t chain;
};

__device__ uint64_t Now() {
  uint64_t ns = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void Fill(uint64_t* words) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords;
       i += size_t{gridDim.x} * blockDim.x)
    words[i] = i;
}
__global__ void Add(uint64_t* words) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords;
       i += size_t{gridDim.x} * blockDim.x)
    words[i] += i + 1;
}
__global__ void LaunchAdd(State* state) {
  cudaGraphLaunch(state->add, cudaStreamGraphTailLaunch);
}
// Once more, until its time is over; what it adds to is all of the memory.
__global__ void Chain(State* state) {
  if (state->chain_until == 0) state->chain_until = Now() + kChainNs;
  ++state->chained;
  if (Now() < state->chain_until)
    cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
// Words that are not as after so many adds.
__global__ void Count(const uint64_t* words, uint64_t adds, Sum* wrong) {
  Sum own = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < kWords;
       i += size_t{gridDim.x} * blockDim.x)
    own += words[i] != i + adds * (i + 1);
  if (own > 0) atomicAdd(wrong, own);
}

class Captured {
 public:
  explicit Captured(cudaStream_t stream) : stream_(stream) {
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  cudaGraphExec_t Instantiate() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    MUST(cudaStreamEndCapture(stream_, &graph));
    MUST(cudaGraphInstantiate(&exec, graph,
                              cudaGraphInstantiateFlagDeviceLaunch));
    MUST(cudaGraphUpload(exec, stream_));
    MUST(cudaStreamSynchronize(stream_));
    return exec;
  }

 private:
  cudaStream_t stream_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gate_device_graph DIR\n");
    return 2;
  }
  const std::string folder = argv[1];
  cudaStream_t stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  uint64_t* words = nullptr;
  State* state = nullptr;
  Sum* wrong = nullptr;
  MUST(cudaMalloc(&words, kWords * 8));
  MUST(cudaMalloc(&state, sizeof(State)));
  MUST(cudaMalloc(&wrong, sizeof(Sum)));
  Fill<<<1024, 256, 0, stream>>>(words);
  MUST(cudaStreamSynchronize(stream));

  State host{};
  {
    Captured captured(stream);
    Add<<<1024, 256, 0, stream>>>(words);
    host.add = captured.Instantiate();
  }
  {
    Captured captured(stream);
    Add<<<1024, 256, 0, stream>>>(words);
    Chain<<<1, 1, 0, stream>>>(state);
    host.chain = captured.Instantiate();
  }
  cudaGraphExec_t launching = nullptr;
  {
    Captured captured(stream);
    LaunchAdd<<<1, 1, 0, stream>>>(state);
    launching = captured.Instantiate();
  }
  MUST(cudaMemcpy(state, &host, sizeof(host), cudaMemcpyHostToDevice));

  uint64_t adds = 0;
  const auto wrong_words = [&] {
    MUST(cudaMemsetAsync(wrong, 0, sizeof(Sum), stream));
    Count<<<1024, 256, 0, stream>>>(words, adds, wrong);
    Sum now = 0;
    MUST(cudaMemcpyAsync(&now, wrong, sizeof(now), cudaMemcpyDeviceToHost,
                         stream));
    MUST(cudaStreamSynchronize(stream));
    return now;
  };
  const auto answer = [&]() -> Sum {
    if (IsThere(folder + "/chain") && host.chain_until == 0) {
      host.chain_until = 1;
      MUST(cudaGraphLaunch(host.chain, stream));
      std::printf("the chain began\n");
      std::fflush(stdout);
      usleep(2500000);  // the GPU launches; the host calls nothing
      std::printf("the chain ends\n");
      std::fflush(stdout);
      State after{};
      MUST(cudaStreamSynchronize(stream));
      MUST(cudaMemcpy(&after, state, sizeof(after), cudaMemcpyDeviceToHost));
      adds += after.chained;
      std::printf("%u launches in the chain: goes on %s\n", after.chained,
                  after.chained > 10 ? "True" : "False");
    }
    MUST(cudaGraphLaunch(launching, stream));
    ++adds;
    return wrong_words();
  };
  return Serve(folder, answer, Sum{0}, "graphs that the GPU launches, 1 GiB");
}
