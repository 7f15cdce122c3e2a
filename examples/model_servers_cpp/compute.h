#ifndef MODEL_SERVERS_COMPUTE_H_
#define MODEL_SERVERS_COMPUTE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "arithmetic.h"

namespace model_servers {

// Does a model's arithmetic where its memory is. Work is done in the order of
// the calls; one thread at a time.
class Compute {
 public:
  virtual ~Compute() = default;

  // The CUDA stream that the work is submitted to; null on the host.
  [[nodiscard]] virtual void* stream() const = 0;
  [[nodiscard]] virtual absl::Status FillWeights(uint64_t* to, uint64_t words,
                                                 uint64_t seed) = 0;
  // The inputs of the rows 0, 1, ... one behind the other.
  [[nodiscard]] virtual absl::Status MakeInput(uint64_t* to, uint64_t words,
                                               uint64_t rows) = 0;
  [[nodiscard]] virtual absl::Status RunLayer(const LayerCall& call) = 0;
  // Waits for all of it. `cell` is a word of the same memory to count in.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Sum(const uint64_t* from,
                                                     uint64_t words,
                                                     uint64_t* cell) = 0;
};

[[nodiscard]] std::unique_ptr<Compute> MakeHostCompute();
// On the GPU of that UUID ("GPU-..."). FAILED_PRECONDITION in a build without
// CUDA.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Compute>> MakeGpuCompute(
    const std::string& uuid);

}  // namespace model_servers

#endif  // MODEL_SERVERS_COMPUTE_H_
