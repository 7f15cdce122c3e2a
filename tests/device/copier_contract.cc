#include "tests/device/copier_contract.h"

#include <fcntl.h>

#include <cstring>
#include <numeric>
#include <random>
#include <variant>

#include "broker/hostpool/slab_rooms.h"
#include "device/cuda/cuda_devices.h"
#include "device/host/host_copy_engine.h"
#include "device/hostpool/page_locker.h"

namespace gmb::device {
namespace {

// Granules of noise; a lease's granule is one window into it.
const std::vector<char>& Noise() {
  static const std::vector<char>& noise = *[] {
    auto* bytes = new std::vector<char>(2 * kSlab);
    std::mt19937_64 random(20240229);
    for (size_t i = 0; i < bytes->size(); i += 8) {
      const uint64_t word = random();
      std::memcpy(bytes->data() + i, &word, 8);
    }
    return bytes;
  }();
  return noise;
}

const char* Expected(uint32_t seed, uint64_t granule) {
  std::minstd_rand random(seed * 7919 + static_cast<uint32_t>(granule));
  random.discard(3);
  return Noise().data() + random() % (kSlab / 8) * 8;
}

absl::StatusOr<std::unique_ptr<CopyEngine>> OpenRealEngine(
    const DeviceInfo& info) {
  if (info.kind == DeviceKind::kHost) return std::make_unique<HostCopyEngine>();
  return OpenCudaCopyEngine(info, 2);
}

}  // namespace

std::function<void(absl::Status)> CopyAnswers::Expect(size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++expected_;
  return [this, index](absl::Status status) {
    const std::lock_guard<std::mutex> lock2(mutex_);
    if (statuses_.size() <= index) statuses_.resize(index + 1);
    statuses_[index] = std::move(status);
    order_.push_back(index);
    changed_.notify_all();
  };
}

std::vector<absl::Status> CopyAnswers::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return order_.size() >= expected_; });
  EXPECT_EQ(order_.size(), expected_) << "an answer came twice";
  return statuses_;
}

absl::Status CopyAnswers::WaitForAll() {
  absl::Status all;
  for (const absl::Status& status : Wait()) all.Update(status);
  return all;
}

std::vector<size_t> CopyAnswers::order() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return order_;
}

uint64_t TestLease::bytes() const {
  return std::accumulate(slab_bytes_.begin(), slab_bytes_.end(), uint64_t{0});
}

absl::Status TestLease::CreateSlab() {
  absl::StatusOr<CreatedSlab> slab =
      allocator_->Create(slab_bytes_[slabs_.size()]);
  if (!slab.ok()) return slab.status();
  slabs_.push_back(*std::move(slab));
  return absl::OkStatus();
}

absl::Status TestLease::CreateAll() {
  while (slabs_.size() < slab_bytes_.size()) {
    if (absl::Status status = CreateSlab(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TestLease::DestroySlab(size_t i) {
  slabs_[i].exported = ShareableHandle();
  return allocator_->Destroy(slabs_[i].key);
}

absl::Status TestLease::DestroyAll() {
  absl::Status status;
  for (size_t i = 0; i < slabs_.size(); ++i) status.Update(DestroySlab(i));
  slabs_.clear();
  return status;
}

ShareableHandle TestLease::Duplicate(size_t i) const {
  const auto& fd = std::get<base::UniqueFd>(slabs_[i].exported);
  return base::UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

absl::Status TestLease::Map() {
  if (range_ == nullptr) {
    auto range = mapper_->Reserve(bytes(), {}, Protection::kReadWrite);
    if (!range.ok()) return range.status();
    range_ = *std::move(range);
  }
  std::vector<ShareableHandle> handles;
  for (size_t i = 0; i < slabs_.size(); ++i) handles.push_back(Duplicate(i));
  return range_->Map(std::move(handles), slab_bytes_);
}

absl::Status TestLease::Write(uint32_t seed) {
  auto* const start = static_cast<char*>(range_->data());
  absl::Status status;
  for (uint64_t i = 0; i < bytes() / kSlab && status.ok(); ++i) {
    status = mapper_->CopyToDevice(start + i * kSlab, Expected(seed, i), kSlab);
  }
  return status;
}

uint64_t TestLease::CountWrongGranules(uint32_t seed) {
  const auto* const start = static_cast<const char*>(range_->data());
  std::vector<char> read(kSlab);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < bytes() / kSlab; ++i) {
    const absl::Status status =
        mapper_->CopyToHost(read.data(), start + i * kSlab, kSlab);
    EXPECT_OK(status);
    if (std::memcmp(read.data(), Expected(seed, i), kSlab) != 0) ++wrong;
  }
  return wrong;
}

void CopierContract::SetUp() {
  DeviceContract::SetUp();
  if (allocator_ == nullptr) return;  // skipped
  auto mapper = OpenMapper(allocator_->info());
  ASSERT_OK(mapper);
  mapper_ = *std::move(mapper);
  MakePool();
  if (!is_ipc()) MakeCopier();
}

void CopierContract::TearDown() {
  copier_.reset();
  for (const CopyFaults& faults : faults_) {
    EXPECT_EQ(faults.mapped, 0) << "slabs were left mapped";
    EXPECT_EQ(faults.flying, 0) << "copies were left in flight";
  }
}

void CopierContract::MakePool(std::unique_ptr<PageLocker> locker) {
  copier_.reset();
  pool_.reset();
  if (locker == nullptr && !is_host()) {
    auto opened = OpenCudaPageLocker(allocator_->info().uuid);
    ASSERT_OK(opened);
    locker = *std::move(opened);
  }
  auto pool = HostPool::Create(
      {.bytes = kPoolBytes, .chunk_bytes = kChunkBytes, .threads = 1},
      std::move(locker));
  ASSERT_OK(pool);
  pool_ = *std::move(pool);
}

void CopierContract::MakeCopier(unsigned seed) {
  copier_.reset();
  std::unique_ptr<CopyEngine> engines[2];
  for (unsigned i = 0; i < 2; ++i) {
    auto real = OpenRealEngine(allocator_->info());
    ASSERT_OK(real);
    engines[i] = std::make_unique<FaultyCopyEngine>(*std::move(real),
                                                    &faults_[i], seed * 2 + i);
  }
  copier_ = std::make_unique<Copier>(pool_.get(), std::move(engines[0]),
                                     std::move(engines[1]), kPacing);
}

CopyJob CopierContract::MakeJob(CopyDirection direction, const TestLease& lease,
                                size_t slab, std::vector<HostExtent> room,
                                CopyAnswers* answers, uint64_t group) {
  return {.direction = direction,
          .group = group,
          .slab = lease.Shared(slab),
          .slab_bytes = lease.slab_bytes()[slab],
          .room = std::move(room),
          .done = answers->Expect(slab)};
}

void CopierContract::PushAll(CopyDirection direction, const TestLease& lease,
                             const std::vector<HostExtent>& place,
                             CopyAnswers* answers, uint64_t group) {
  std::vector<std::vector<HostExtent>> rooms =
      broker::SlabRooms(place, lease.slab_bytes());
  ASSERT_EQ(rooms.size(), lease.num_slabs());
  for (size_t i = 0; i < rooms.size(); ++i) {
    copier_->Push(
        MakeJob(direction, lease, i, std::move(rooms[i]), answers, group));
  }
  copier_->Wake();
}

absl::Status CopierContract::CopyAll(CopyDirection direction,
                                     const TestLease& lease,
                                     const std::vector<HostExtent>& place) {
  CopyAnswers answers;
  PushAll(direction, lease, place, &answers);
  return answers.WaitForAll();
}

}  // namespace gmb::device
