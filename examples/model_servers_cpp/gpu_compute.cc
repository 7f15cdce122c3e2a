#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compute.h"
#include "gpu_kernels.h"

namespace model_servers {
namespace {

absl::Status Check(const char* error) {
  if (error == nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("CUDA: ", error));
}

class GpuCompute final : public Compute {
 public:
  explicit GpuCompute(const GpuStream& gpu) : gpu_(gpu) {}
  GpuCompute(const GpuCompute&) = delete;
  GpuCompute& operator=(const GpuCompute&) = delete;
  ~GpuCompute() override { GpuClose(gpu_); }

  [[nodiscard]] void* stream() const override { return gpu_.stream; }
  absl::Status FillWeights(uint64_t* to, uint64_t words,
                           uint64_t seed) override {
    return Check(GpuFillWeights(gpu_, to, words, seed));
  }
  absl::Status MakeInput(uint64_t* to, uint64_t words, uint64_t rows) override {
    return Check(GpuMakeInput(gpu_, to, words, rows));
  }
  absl::Status RunLayer(const LayerCall& call) override {
    return Check(GpuRunLayer(gpu_, call));
  }
  absl::StatusOr<uint64_t> Sum(const uint64_t* from, uint64_t words,
                               uint64_t* cell) override {
    uint64_t sum = 0;
    if (absl::Status summed = Check(GpuSum(gpu_, from, words, cell, &sum));
        !summed.ok()) {
      return summed;
    }
    return sum;
  }

 private:
  const GpuStream gpu_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Compute>> MakeGpuCompute(
    const std::string& uuid) {
  GpuStream gpu;
  if (absl::Status opened = Check(GpuOpen(uuid.c_str(), &gpu)); !opened.ok()) {
    return opened;
  }
  return std::make_unique<GpuCompute>(gpu);
}

}  // namespace model_servers
