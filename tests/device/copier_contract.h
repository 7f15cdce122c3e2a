#ifndef GMB_TESTS_DEVICE_COPIER_CONTRACT_H_
#define GMB_TESTS_DEVICE_COPIER_CONTRACT_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/host_pool.h"
#include "device/mapper.h"
#include "tests/device/device_contract.h"
#include "tests/device/faulty_copy_engine.h"

namespace gmb::device {

// Collects the answers of copies, which arrive on the copier's threads.
class CopyAnswers {
 public:
  // To be told once; `index` says which one it is.
  std::function<void(absl::Status)> Expect(size_t index);
  // Waits for all that are expected. In the order of index.
  std::vector<absl::Status> Wait();
  // The first error of all, or OK.
  absl::Status WaitForAll();
  [[nodiscard]] std::vector<size_t> order();  // in which they arrived

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t expected_ = 0;
  std::vector<absl::Status> statuses_;
  std::vector<size_t> order_;
};

// A lease with contents, of a client in this process: slabs under one range
// that stays where it is.
class TestLease {
 public:
  TestLease(Allocator* allocator, Mapper* mapper,
            std::vector<uint64_t> slab_bytes)
      : allocator_(allocator),
        mapper_(mapper),
        slab_bytes_(std::move(slab_bytes)) {}

  [[nodiscard]] const std::vector<uint64_t>& slab_bytes() const {
    return slab_bytes_;
  }
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] void* address() const { return range_->data(); }
  [[nodiscard]] size_t num_slabs() const { return slabs_.size(); }

  absl::Status CreateSlab();  // the next one
  absl::Status CreateAll();
  absl::Status DestroySlab(size_t i);
  absl::Status DestroyAll();
  absl::Status Map();
  absl::Status Unmap() { return range_->Unmap(); }

  // A duplicate of a slab's handle.
  [[nodiscard]] ShareableHandle Duplicate(size_t i) const;
  // The same for a copier.
  [[nodiscard]] std::shared_ptr<const ShareableHandle> Shared(size_t i) const {
    return std::make_shared<const ShareableHandle>(Duplicate(i));
  }

  // Contents that depend on the seed and the place. The slabs are mapped.
  absl::Status Write(uint32_t seed);
  // Granules (2 MiB) that do not hold what Write(seed) wrote.
  [[nodiscard]] uint64_t CountWrongGranules(uint32_t seed);

 private:
  Allocator* const allocator_;
  Mapper* const mapper_;
  const std::vector<uint64_t> slab_bytes_;
  std::vector<CreatedSlab> slabs_;  // destroyed ones have no handle
  std::unique_ptr<MappedRange> range_;
};

// The duties of a copier on every kind of device that can be evicted, with the
// same choice of devices as DeviceContract. The host pool and the pieces are
// small, so that a few slabs cross all their borders.
class CopierContract : public DeviceContract {
 protected:
  static constexpr uint64_t kPoolBytes = 48 * kMiB;
  static constexpr uint64_t kChunkBytes = 4 * kMiB;
  static constexpr CopyPacing kPacing = {
      .piece_bytes = kMiB, .window_bytes = 3 * kMiB, .streams = 2};

  void SetUp() override;
  void TearDown() override;

  // `locker` null: as the device needs it.
  void MakePool(std::unique_ptr<PageLocker> locker = nullptr);
  void MakeCopier(unsigned seed = 1);

  TestLease MakeLease(std::vector<uint64_t> slab_bytes) {
    return {allocator_.get(), mapper_.get(), std::move(slab_bytes)};
  }

  CopyJob MakeJob(CopyDirection direction, const TestLease& lease, size_t slab,
                  std::vector<HostExtent> room, CopyAnswers* answers,
                  uint64_t group = 0);
  // Pushes the copies of all slabs of a lease to or from `place`.
  void PushAll(CopyDirection direction, const TestLease& lease,
               const std::vector<HostExtent>& place, CopyAnswers* answers,
               uint64_t group = 0);
  absl::Status CopyAll(CopyDirection direction, const TestLease& lease,
                       const std::vector<HostExtent>& place);

  std::unique_ptr<Mapper> mapper_;
  std::unique_ptr<HostPool> pool_;
  CopyFaults faults_[2];  // of the directions out and in
  std::unique_ptr<Copier> copier_;
};

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_COPIER_CONTRACT_H_
