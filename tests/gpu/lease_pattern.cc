#include "tests/gpu/lease_pattern.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/device/pattern_kernel.h"

namespace gmb::scenario {
namespace {

constexpr uint64_t kWordsAtOnce = uint64_t{1} << 17;

uint64_t Word(uint64_t seed, uint64_t index) {
  return (seed + index) * 0x9E3779B97F4A7C15U;
}

class ByCopies : public LeasePattern {
 public:
  std::string name() const override { return "copies"; }

  absl::Status Fill(Lease* lease, uint64_t seed) override {
    const uint64_t words = lease->size_bytes() / sizeof(uint64_t);
    for (uint64_t at = 0; at < words; at += words_.size()) {
      words_.resize(std::min(kWordsAtOnce, words - at));
      for (uint64_t i = 0; i < words_.size(); ++i)
        words_[i] = Word(seed, at + i);
      const absl::Status copied =
          lease->CopyFromHost(at * sizeof(uint64_t), words_.data(),
                              words_.size() * sizeof(uint64_t));
      if (!copied.ok()) return copied;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> CountWrong(const Lease& lease,
                                      uint64_t seed) override {
    return CountUnless(lease, [seed](uint64_t index, uint64_t found) {
      return found == Word(seed, index);
    });
  }
  absl::StatusOr<uint64_t> CountNonZero(const Lease& lease) override {
    return CountUnless(lease,
                       [](uint64_t, uint64_t found) { return found == 0; });
  }

 private:
  template <typename Expected>
  absl::StatusOr<uint64_t> CountUnless(const Lease& lease,
                                       const Expected& expected) {
    const uint64_t words = lease.size_bytes() / sizeof(uint64_t);
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < words; at += words_.size()) {
      words_.resize(std::min(kWordsAtOnce, words - at));
      const absl::Status copied =
          lease.CopyToHost(words_.data(), at * sizeof(uint64_t),
                           words_.size() * sizeof(uint64_t));
      if (!copied.ok()) return copied;
      for (uint64_t i = 0; i < words_.size(); ++i) {
        if (!expected(at + i, words_[i])) ++wrong;
      }
    }
    return wrong;
  }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(1);
};

class ByKernels : public LeasePattern {
 public:
  explicit ByKernels(device::PatternKernel kernel)
      : kernel_(std::move(kernel)) {}

  std::string name() const override { return "kernels"; }
  absl::Status Fill(Lease* lease, uint64_t seed) override {
    return kernel_.Fill(lease->data(), lease->size_bytes(), seed);
  }
  absl::StatusOr<uint64_t> CountWrong(const Lease& lease,
                                      uint64_t seed) override {
    return kernel_.CountWrong(lease.data(), lease.size_bytes(), seed);
  }
  absl::StatusOr<uint64_t> CountNonZero(const Lease& lease) override {
    return kernel_.CountNonZero(lease.data(), lease.size_bytes());
  }

 private:
  device::PatternKernel kernel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LeasePattern>> LeasePattern::For(
    const Device& device) {
  if (device.kind != DeviceKind::kHost) {
    auto kernel = device::PatternKernel::Load(device.uuid);
    if (kernel.ok()) return std::make_unique<ByKernels>(*std::move(kernel));
    if (!absl::IsUnimplemented(kernel.status())) return kernel.status();
  }
  (void)device;
  return std::make_unique<ByCopies>();
}

}  // namespace gmb::scenario
