#include "bench/device/plain_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::bench {
namespace {

using device::CopyDirection;

class HostCopy final : public PlainCopy {
 public:
  explicit HostCopy(uint64_t bytes) : device_(bytes, 1), host_(bytes, 2) {}

  absl::StatusOr<absl::Duration> Run(CopyDirection direction,
                                     uint64_t bytes) override {
    const bool out = direction == CopyDirection::kOut;
    const absl::Time start = absl::Now();
    for (uint64_t left = bytes; left > 0;) {
      const uint64_t piece = std::min<uint64_t>(left, host_.size());
      std::memcpy(out ? host_.data() : device_.data(),
                  out ? device_.data() : host_.data(), piece);
      left -= piece;
    }
    return absl::Now() - start;
  }

 private:
  std::vector<char> device_;
  std::vector<char> host_;
};

class CudaCopy final : public PlainCopy {
 public:
  CudaCopy(std::shared_ptr<const device::CudaContext> context, uint64_t bytes)
      : context_(std::move(context)), host_(bytes, 2) {}
  CudaCopy(const CudaCopy&) = delete;
  CudaCopy& operator=(const CudaCopy&) = delete;
  ~CudaCopy() override {
    const device::ScopedContext scope(*context_);
    if (locked_) driver().cuMemHostUnregister(host_.data());
    if (device_ != 0) driver().cuMemFree_v2(device_);
  }

  absl::Status Open() {
    const device::ScopedContext scope(*context_);
    absl::Status status =
        GMB_CUDA(driver(), cuMemAlloc_v2, &device_, host_.size());
    if (!status.ok()) return status;
    status =
        GMB_CUDA(driver(), cuMemHostRegister_v2, host_.data(), host_.size(), 0);
    locked_ = status.ok();
    return status;
  }

  absl::StatusOr<absl::Duration> Run(CopyDirection direction,
                                     uint64_t bytes) override {
    const device::ScopedContext scope(*context_);
    const absl::Time start = absl::Now();
    for (uint64_t left = bytes; left > 0;) {
      const uint64_t piece = std::min<uint64_t>(left, host_.size());
      const absl::Status status = direction == CopyDirection::kOut
                                      ? GMB_CUDA(driver(), cuMemcpyDtoH_v2,
                                                 host_.data(), device_, piece)
                                      : GMB_CUDA(driver(), cuMemcpyHtoD_v2,
                                                 device_, host_.data(), piece);
      if (!status.ok()) return status;
      left -= piece;
    }
    const absl::Status status = GMB_CUDA(driver(), cuCtxSynchronize);
    if (!status.ok()) return status;
    return absl::Now() - start;
  }

 private:
  [[nodiscard]] const device::CudaDriver& driver() const {
    return context_->driver();
  }

  const std::shared_ptr<const device::CudaContext> context_;
  std::vector<char> host_;
  CUdeviceptr device_ = 0;
  bool locked_ = false;
};

absl::StatusOr<std::unique_ptr<PlainCopy>> OpenCudaCopy(
    const device::DeviceInfo& info, uint64_t bytes) {
  const auto driver = device::CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const auto found = device::FindCudaDevice(**driver, info.uuid);
  if (!found.ok()) return found.status();
  auto context = device::CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return context.status();
  auto copy = std::make_unique<CudaCopy>(*std::move(context), bytes);
  if (absl::Status status = copy->Open(); !status.ok()) return status;
  return copy;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PlainCopy>> OpenPlainCopy(
    const device::DeviceInfo& info, uint64_t buffer_bytes) {
  if (info.kind == device::DeviceKind::kVmm) {
    return OpenCudaCopy(info, buffer_bytes);
  }
  if (info.kind == device::DeviceKind::kHost) {
    return std::make_unique<HostCopy>(buffer_bytes);
  }
  return absl::FailedPreconditionError("no plain copies for this device");
}

}  // namespace gmb::bench
