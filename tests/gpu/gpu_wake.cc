#include <cuda.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/driver_lookup.h"

// A program that knows nothing of gmb, and how long its answer takes after its
// memory was away:
//   gpu_wake BYTES PIECE DIR
// It holds BYTES in allocations of PIECE. Its answer writes a word of each. It
// says how long that takes while all is there, and how fast a plain copy from
// page-locked memory is; then it answers each time DIR/go-N appears, until
// DIR/end does. The goal of an answer is (bytes / the copy's rate + the answer
// while all is there), to which it gives its own as a ratio.

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(gmb::test::FindInDriver(name, 7000));
}
void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "gpu_wake: %s: %d\n", what, result);
  std::exit(1);
}
// By the name without its version, as the CUDA runtime asks.
#define MUST(name, ...) Must(Find<decltype(&(name))>(#name)(__VA_ARGS__), #name)

bool IsThere(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0;
}

class Program {
 public:
  Program(size_t bytes, size_t piece) : piece_(piece) {
    for (size_t at = 0; at < bytes; at += piece) {
      CUdeviceptr address = 0;
      MUST(cuMemAlloc, &address, piece);
      pieces_.push_back(address);
    }
    for (size_t i = 0; i < pieces_.size(); ++i)
      MUST(cuMemsetD32, pieces_[i], static_cast<unsigned>(i), piece / 4);
    MUST(cuCtxSynchronize);
  }

  [[nodiscard]] size_t bytes() const { return pieces_.size() * piece_; }
  [[nodiscard]] size_t pieces() const { return pieces_.size(); }

  // How long it took, in ms.
  [[nodiscard]] double Answer() {
    const auto began = Clock::now();
    for (size_t i = 0; i < pieces_.size(); ++i)
      MUST(cuMemsetD32, pieces_[i], static_cast<unsigned>(i), 1);
    MUST(cuCtxSynchronize);
    return Milliseconds(Clock::now() - began).count();
  }

  // The first and the last word of each piece.
  [[nodiscard]] bool Right() const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      unsigned words[2] = {~0U, ~0U};
      MUST(cuMemcpyDtoH, &words[0], pieces_[i], 4);
      MUST(cuMemcpyDtoH, &words[1], pieces_[i] + piece_ - 4, 4);
      if (words[0] != i || words[1] != i) return false;
    }
    return true;
  }

  // Bytes a millisecond, into the first pieces, whose contents it leaves alone.
  [[nodiscard]] double PlainCopy() const {
    constexpr size_t kBytes = size_t{512} << 20;
    CUdeviceptr to = 0;
    void* from = nullptr;
    MUST(cuMemAllocHost, &from, kBytes);
    MUST(cuMemAlloc, &to, kBytes);
    std::vector<double> took;
    for (int i = 0; i < 6; ++i) {
      const auto began = Clock::now();
      MUST(cuMemcpyHtoD, to, from, kBytes);
      MUST(cuCtxSynchronize);
      took.push_back(Milliseconds(Clock::now() - began).count());
    }
    MUST(cuMemFree, to);
    MUST(cuMemFreeHost, from);
    return static_cast<double>(kBytes) /
           *std::min_element(took.begin(), took.end());
  }

 private:
  const size_t piece_;
  std::vector<CUdeviceptr> pieces_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpu_wake BYTES PIECE DIR\n");
    return 2;
  }
  MUST(cuInit, 0);
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain, &context, 0);
  MUST(cuCtxSetCurrent, context);
  Program program(std::strtoull(argv[1], nullptr, 10),
                  std::strtoull(argv[2], nullptr, 10));
  const std::string dir = argv[3];
  const double rate = program.PlainCopy();
  double there = program.Answer();
  for (int i = 0; i < 5; ++i) there = std::min(there, program.Answer());
  const double goal = static_cast<double>(program.bytes()) / rate + there;
  std::printf(
      "ready: %zu pieces, plain copy %.1f GB/s, answer %.2f ms while all is "
      "there\n",
      program.pieces(), rate / 1e6, there);
  std::fflush(stdout);
  for (int turn = 1;; ++turn) {
    while (!IsThere(dir + "/go-" + std::to_string(turn))) {
      if (IsThere(dir + "/end")) return 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double took = program.Answer();
    const bool right = program.Right();
    std::printf("turn %d: %.1f ms, %.2f of the goal's parts, contents %s\n",
                turn, took, took / goal, right ? "right" : "WRONG");
    std::fflush(stdout);
    if (!right) return 1;
  }
}
