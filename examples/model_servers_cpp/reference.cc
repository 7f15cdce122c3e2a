#include "reference.h"

#include <memory>

#include "compute.h"

namespace model_servers {

absl::StatusOr<std::map<uint64_t, uint64_t>> ExpectedSums(
    const Model& model, const std::vector<uint64_t>& batches) {
  const std::unique_ptr<Compute> compute = MakeHostCompute();
  std::vector<uint64_t> weights(model.weight_words());
  if (absl::Status filled = compute->FillWeights(weights.data(), weights.size(),
                                                 model.weight_seed());
      !filled.ok()) {
    return filled;
  }
  std::map<uint64_t, uint64_t> sums;
  for (const uint64_t rows : batches) {
    std::vector<std::vector<uint64_t>> memory;
    std::vector<uint64_t*> buffers;
    for (const uint64_t bytes : model.Plan(rows)) {
      memory.emplace_back(bytes / sizeof(uint64_t));
      buffers.push_back(memory.back().data());
    }
    const auto sum = model.Run(*compute, weights.data(), rows, buffers);
    if (!sum.ok()) return sum.status();
    sums[rows] = *sum;
  }
  return sums;
}

}  // namespace model_servers
