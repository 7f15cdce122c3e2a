#ifndef GMB_TESTS_DEVICE_DEVICE_CONTRACT_H_
#define GMB_TESTS_DEVICE_DEVICE_CONTRACT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "device/allocator.h"
#include "device/devices.h"
#include "device/handle.h"
#include "tests/device/remote_mapper.h"

#define ASSERT_OK(expression) ASSERT_EQ(StatusOf(expression), absl::OkStatus())
#define EXPECT_OK(expression) EXPECT_EQ(StatusOf(expression), absl::OkStatus())

namespace gmb::device {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kSlab = 2 * kMiB;  // granularity of every kind

// The duties of every kind of device, checked with the broker's side in this
// process and clients in processes of their own. The parameter is the kind; a
// CUDA kind without a GPU is skipped. GMB_TEST_GPU names a GPU other than the
// first.
class DeviceContract : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override;

  [[nodiscard]] bool is_host() const { return GetParam() == DeviceKind::kHost; }
  [[nodiscard]] bool is_ipc() const { return GetParam() == DeviceKind::kIpc; }

  // A GPU whose free memory moves by what contexts use. (The fake one's does
  // not, and it is small.)
  [[nodiscard]] bool is_real_gpu() const {
    return allocator_->info().total_bytes > 4096 * kMiB;
  }
  // Large enough to stand out from what CUDA contexts use.
  [[nodiscard]] uint64_t large_bytes() const {
    return is_real_gpu() ? 1024 * kMiB : 32 * kMiB;
  }

  // A client that has its context, so that the device's free memory changes by
  // slabs only from here on.
  std::unique_ptr<RemoteMapper> StartClient();

  // Creates a slab and remembers its handle, as a broker does.
  struct Slab {
    SlabKey key = 0;
    uint64_t bytes = 0;
    ShareableHandle handle;
  };
  absl::StatusOr<Slab> Create(uint64_t bytes);
  // Closes the handle and destroys the slab.
  absl::Status Destroy(Slab* slab);

  // Reserves, sends and maps all of `slabs`.
  absl::Status Lease(RemoteMapper* client, const std::vector<Slab*>& slabs,
                     bool keep_fds = false,
                     Protection protection = Protection::kReadWrite);

  uint64_t FreeBytes();
  // Waits until at least `bytes` are free, within what a GPU may be off by.
  bool WaitForFree(uint64_t bytes);
  // How much free memory of a GPU may move without us.
  [[nodiscard]] uint64_t tolerance() const {
    return is_real_gpu() ? 64 * kMiB : 0;
  }

  // Another broker's allocator of the same device.
  absl::StatusOr<std::unique_ptr<Allocator>> OpenAllocator();

  std::string gpu_;
  std::unique_ptr<Allocator> allocator_;
};

std::string KindName(const testing::TestParamInfo<DeviceKind>& info);

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_DEVICE_CONTRACT_H_
