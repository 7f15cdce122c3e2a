// Map: a lease whose addresses the program chose by cuMemMap (`gmb run`).
#include "client/lease/hooked_mapper.h"

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace gmb::internal {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

absl::Status FromDriver(int result, absl::string_view what) {
  if (result == 0) return absl::OkStatus();
  const std::string message =
      absl::StrCat("the driver does not ", what,
                   " the program's handle: CUDA error ", result);
  return result == kOutOfMemory ? absl::ResourceExhaustedError(message)
                                : absl::InternalError(message);
}

absl::Status NoAddress() {
  return absl::FailedPreconditionError(
      "gmb: the lease has no address of its own: its holder maps it");
}

class HookedRange final : public device::MappedRange {
 public:
  HookedRange(const RangeHooks& hooks, uint64_t bytes)
      : hooks_(hooks), bytes_(bytes) {}
  HookedRange(const HookedRange&) = delete;
  HookedRange& operator=(const HookedRange&) = delete;
  ~HookedRange() override { Unmap().IgnoreError(); }

  [[nodiscard]] void* data() const override { return nullptr; }
  [[nodiscard]] uint64_t size_bytes() const override { return bytes_; }

  [[nodiscard]] absl::Status Map(
      std::vector<device::ShareableHandle> handles,
      absl::Span<const uint64_t> slab_bytes) override {
    if (handles.size() != slab_bytes.size() ||
        std::accumulate(slab_bytes.begin(), slab_bytes.end(), uint64_t{0}) !=
            bytes_) {
      return absl::InvalidArgumentError("slabs that are not the range's");
    }
    std::vector<int> fds;
    for (const device::ShareableHandle& handle : handles) {
      const auto* const fd = std::get_if<base::UniqueFd>(&handle);
      if (fd == nullptr || !fd->valid()) {
        return absl::InvalidArgumentError(
            "a slab of a vmm device comes as a file descriptor; got none");
      }
      fds.push_back(fd->get());
    }
    const int result =
        hooks_.map(hooks_.handle, fds.data(), slab_bytes.data(), fds.size());
    mapped_ = result == 0;
    return FromDriver(result, "map");
  }

  [[nodiscard]] absl::Status Unmap() override {
    if (!mapped_) return absl::OkStatus();
    const int result = hooks_.unmap(hooks_.handle);
    mapped_ = result != 0;
    return FromDriver(result, "unmap");
  }

 private:
  const RangeHooks hooks_;
  const uint64_t bytes_;
  bool mapped_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<device::MappedRange>> HookedMapper::Reserve(
    uint64_t bytes, absl::Span<const std::string> /*access*/,
    device::Protection /*protection*/) {
  return std::make_unique<HookedRange>(hooks_, bytes);
}

absl::Status HookedMapper::CopyToHost(void* /*to*/, const void* /*from_device*/,
                                      uint64_t /*bytes*/) {
  return NoAddress();
}

absl::Status HookedMapper::CopyToDevice(void* /*to_device*/,
                                        const void* /*from*/,
                                        uint64_t /*bytes*/) {
  return NoAddress();
}

absl::Status HookedMapper::Fill(void* /*device*/, uint8_t /*value*/,
                                uint64_t /*bytes*/) {
  return NoAddress();
}

}  // namespace gmb::internal
