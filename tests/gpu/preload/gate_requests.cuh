// A CUDA program that answers whenever DIR/go-N appears, as gate_requests.py:
// says "ready", and for each answer how long it took and whether it is right.
#ifndef GMB_TESTS_GPU_PRELOAD_GATE_REQUESTS_CUH_
#define GMB_TESTS_GPU_PRELOAD_GATE_REQUESTS_CUH_

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

inline void Must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
#define MUST(call) Must(call, #call)

inline bool IsThere(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0;
}

// `answer` does all its work on the GPU, and returns a value over every byte
// that it read. It has to be `right` each time, before the memory was away too.
template <typename Answer, typename Value>
int Serve(const std::string& folder, Answer answer, Value right,
          const char* what) {
  for (int i = 0; i < 2; ++i) {
    const Value now = answer();
    if (now == right) continue;
    std::fprintf(stderr, "%s: %llx is not %llx while the memory is there\n",
                 what, static_cast<unsigned long long>(now),
                 static_cast<unsigned long long>(right));
    return 1;
  }
  std::printf("ready %s\n", what);
  std::fflush(stdout);
  for (int turn = 1;; ++turn) {
    while (!IsThere(folder + "/go-" + std::to_string(turn))) {
      if (IsThere(folder + "/end")) {
        std::printf("end\n");
        return 0;
      }
      usleep(10000);
    }
    double took[2];
    bool equal = true;
    for (double& ms : took) {
      const auto began = std::chrono::steady_clock::now();
      equal = answer() == right && equal;
      ms = std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - began)
               .count();
    }
    std::printf("turn %d: first answer %.1f ms, resident %.1f ms, equal %s\n",
                turn, took[0], took[1], equal ? "True" : "False");
    std::fflush(stdout);
  }
}

#endif  // GMB_TESTS_GPU_PRELOAD_GATE_REQUESTS_CUH_
