#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compute.h"

namespace model_servers {
namespace {

class HostCompute final : public Compute {
 public:
  [[nodiscard]] void* stream() const override { return nullptr; }

  absl::Status FillWeights(uint64_t* to, uint64_t words,
                           uint64_t seed) override {
    for (uint64_t i = 0; i < words; ++i) to[i] = WeightAt(seed, i);
    return absl::OkStatus();
  }

  absl::Status MakeInput(uint64_t* to, uint64_t words, uint64_t rows) override {
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t i = 0; i < words; ++i) *to++ = InputAt(row, i);
    }
    return absl::OkStatus();
  }

  absl::Status RunLayer(const LayerCall& call) override {
    uint64_t* out = call.out;
    for (uint64_t row = 0; row < call.rows; ++row) {
      for (uint64_t i = 0; i < call.out_words; ++i) {
        *out++ = OutputAt(call, row, i);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Sum(const uint64_t* from, uint64_t words,
                               uint64_t* cell) override {
    *cell = 0;
    for (uint64_t i = 0; i < words; ++i) *cell += from[i];
    return *cell;
  }
};

}  // namespace

std::unique_ptr<Compute> MakeHostCompute() {
  return std::make_unique<HostCompute>();
}

}  // namespace model_servers
