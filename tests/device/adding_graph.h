#ifndef GMB_TESTS_DEVICE_ADDING_GRAPH_H_
#define GMB_TESTS_DEVICE_ADDING_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "tests/device/driver_of_programs.h"

namespace gmb::device {

// A CUDA graph, captured from a stream, whose one kernel holds a raw pointer:
// each replay adds i + 1 to the i-th 8 bytes of the memory. For tests of what
// became of the memory meanwhile.
class AddingGraph {
 public:
  // Captures. No context may be synchronised meanwhile.
  [[nodiscard]] static absl::StatusOr<AddingGraph> Capture(
      const std::string& uuid, void* memory, uint64_t bytes);
  // Launches it and waits for its end.
  [[nodiscard]] absl::Status Replay();

 private:
  explicit AddingGraph(std::shared_ptr<const CudaContext> context)
      : context_(std::move(context)) {}
  absl::Status Load(CUfunction* kernel);
  absl::Status Record(CUfunction kernel, void* memory, uint64_t bytes);

  std::shared_ptr<const CudaContext> context_;
  CUstream stream_ = nullptr;
  CUgraphExec graph_ = nullptr;  // ends with the context, as the stream does
};

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_ADDING_GRAPH_H_
