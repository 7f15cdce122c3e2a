#include "bench/device/steps.h"

#include <memory>
#include <variant>

#include "absl/time/clock.h"
#include "base/unique_fd.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"

namespace gmb::bench {
namespace {

using device::CudaContext;
using device::CudaDriver;

// One lease, step by step. An error leaves the rest to the process's end.
class Lease {
 public:
  Lease(std::shared_ptr<const CudaContext> context,
        const CUmemAllocationProp& properties,
        const std::vector<uint64_t>& slab_bytes)
      : context_(std::move(context)),
        driver_(context_->driver()),
        properties_(properties),
        slab_bytes_(slab_bytes),
        created_(slab_bytes.size()),
        imported_(slab_bytes.size()),
        fds_(slab_bytes.size()) {
    for (const uint64_t bytes : slab_bytes) total_bytes_ += bytes;
  }

  absl::Status Create(size_t i) {
    return GMB_CUDA(driver_, cuMemCreate, &created_[i], slab_bytes_[i],
                    &properties_, 0);
  }
  absl::Status Export(size_t i) {
    int fd = -1;
    absl::Status status =
        GMB_CUDA(driver_, cuMemExportToShareableHandle, &fd, created_[i],
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    fds_[i].reset(fd);
    return status;
  }
  absl::Status Import(size_t i) {
    return GMB_CUDA(driver_, cuMemImportFromShareableHandle, &imported_[i],
                    reinterpret_cast<void*>(intptr_t{fds_[i].get()}),
                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }
  absl::Status Close(size_t i) {
    fds_[i].reset();
    return absl::OkStatus();
  }
  absl::Status Map(size_t i) {
    if (i == 0) mapped_ = start_;
    absl::Status status = GMB_CUDA(driver_, cuMemMap, mapped_, slab_bytes_[i],
                                   0, imported_[i], 0);
    mapped_ += slab_bytes_[i];
    return status;
  }
  absl::Status ReleaseImported(size_t i) {
    return GMB_CUDA(driver_, cuMemRelease, imported_[i]);
  }
  absl::Status ReleaseCreated(size_t i) {
    return GMB_CUDA(driver_, cuMemRelease, created_[i]);
  }
  absl::Status Reserve() {
    return GMB_CUDA(driver_, cuMemAddressReserve, &start_, total_bytes_, 0, 0,
                    0);
  }
  absl::Status SetAccess() {
    CUmemAccessDesc access = {};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return GMB_CUDA(driver_, cuMemSetAccess, start_, total_bytes_, &access, 1);
  }
  absl::Status Unmap() {
    return GMB_CUDA(driver_, cuMemUnmap, start_, total_bytes_);
  }
  absl::Status FreeRange() {
    return GMB_CUDA(driver_, cuMemAddressFree, start_, total_bytes_);
  }

  // Measures a step that is done once for each slab, or once for the lease.
  absl::Status Each(const char* name, absl::Status (Lease::*step)(size_t)) {
    const absl::Time start = absl::Now();
    for (size_t i = 0; i < slab_bytes_.size(); ++i) {
      if (absl::Status status = (this->*step)(i); !status.ok()) return status;
    }
    steps_.emplace_back(name, absl::Now() - start);
    return absl::OkStatus();
  }
  absl::Status Once(const char* name, absl::Status (Lease::*step)()) {
    const absl::Time start = absl::Now();
    absl::Status status = (this->*step)();
    steps_.emplace_back(name, absl::Now() - start);
    return status;
  }

  // In the order of VmmMapper, but for the closing, which it does after each
  // import: here it comes last, since what it waits for is of interest.
  absl::StatusOr<std::vector<Step>> RunAsClient(
      std::vector<device::ShareableHandle> handles) {
    if (handles.size() != fds_.size())
      return absl::InternalError("as many handles as slabs");
    for (size_t i = 0; i < handles.size(); ++i) {
      auto* const fd = std::get_if<base::UniqueFd>(&handles[i]);
      if (fd == nullptr) return absl::InternalError("a slab without an fd");
      fds_[i] = std::move(*fd);
    }
    const device::ScopedContext scope(*context_);
    absl::Status status = Once("reserve", &Lease::Reserve);
    if (status.ok()) status = Each("import", &Lease::Import);
    if (status.ok()) status = Each("map", &Lease::Map);
    if (status.ok()) status = Each("release imp.", &Lease::ReleaseImported);
    if (status.ok()) status = Once("access", &Lease::SetAccess);
    if (status.ok()) status = Each("close fd", &Lease::Close);
    if (status.ok()) status = Once("unmap", &Lease::Unmap);
    if (status.ok()) status = Once("free range", &Lease::FreeRange);
    if (!status.ok()) return status;
    return steps_;
  }

  absl::StatusOr<std::vector<Step>> Run() {
    const device::ScopedContext scope(*context_);
    absl::Status status = Each("create", &Lease::Create);
    if (status.ok()) status = Each("export", &Lease::Export);
    if (status.ok()) status = Once("reserve", &Lease::Reserve);
    if (status.ok()) status = Each("import", &Lease::Import);
    if (status.ok()) status = Each("close fd", &Lease::Close);
    if (status.ok()) status = Each("map", &Lease::Map);
    if (status.ok()) status = Each("release imp.", &Lease::ReleaseImported);
    if (status.ok()) status = Once("access", &Lease::SetAccess);
    if (status.ok()) status = Once("unmap", &Lease::Unmap);
    if (status.ok()) status = Each("release", &Lease::ReleaseCreated);
    if (status.ok()) status = Once("free range", &Lease::FreeRange);
    if (!status.ok()) return status;
    return steps_;
  }

 private:
  const std::shared_ptr<const CudaContext> context_;
  const CudaDriver& driver_;
  const CUmemAllocationProp properties_;
  const std::vector<uint64_t>& slab_bytes_;
  uint64_t total_bytes_ = 0;
  CUdeviceptr start_ = 0;
  CUdeviceptr mapped_ = 0;
  std::vector<CUmemGenericAllocationHandle> created_;
  std::vector<CUmemGenericAllocationHandle> imported_;
  std::vector<base::UniqueFd> fds_;
  std::vector<Step> steps_;
};

absl::StatusOr<Lease> OpenLease(const device::DeviceInfo& info,
                                const std::vector<uint64_t>& slab_bytes) {
  const auto driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  const auto found = device::FindCudaDevice(**driver, info.uuid);
  if (!found.ok()) return found.status();
  const auto properties = device::VmmProperties(**driver, *found);
  if (!properties.ok()) return properties.status();
  auto context = CudaContext::Retain(*driver, found->device);
  if (!context.ok()) return context.status();
  return Lease(*std::move(context), *properties, slab_bytes);
}

}  // namespace

absl::StatusOr<std::vector<Step>> RunDriverSteps(
    const device::DeviceInfo& info, const std::vector<uint64_t>& slab_bytes) {
  absl::StatusOr<Lease> lease = OpenLease(info, slab_bytes);
  if (!lease.ok()) return lease.status();
  return lease->Run();
}

absl::StatusOr<std::vector<Step>> RunClientSteps(
    const device::DeviceInfo& info,
    std::vector<device::ShareableHandle> handles,
    const std::vector<uint64_t>& slab_bytes) {
  absl::StatusOr<Lease> lease = OpenLease(info, slab_bytes);
  if (!lease.ok()) return lease.status();
  return lease->RunAsClient(std::move(handles));
}

}  // namespace gmb::bench
