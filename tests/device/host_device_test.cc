#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "device/devices.h"
#include "tests/device/faulty_allocator.h"

namespace gmb::device {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSlab = uint64_t{2} << 20;

class HostDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto allocator = OpenHostAllocator({.capacity_bytes = 8 * kSlab});
    ASSERT_TRUE(allocator.ok()) << allocator.status();
    allocator_ = *std::move(allocator);
    auto mapper = OpenMapper(allocator_->info());
    ASSERT_TRUE(mapper.ok()) << mapper.status();
    mapper_ = *std::move(mapper);
  }

  CreatedSlab Create(uint64_t bytes) {
    absl::StatusOr<CreatedSlab> slab = allocator_->Create(bytes);
    EXPECT_TRUE(slab.ok()) << slab.status();
    return *std::move(slab);
  }

  static int FdOf(const CreatedSlab& slab) {
    return std::get<base::UniqueFd>(slab.exported).get();
  }

  std::unique_ptr<MappedRange> MapOne(ShareableHandle handle, uint64_t bytes) {
    auto range = mapper_->Reserve(bytes, {}, Protection::kReadWrite);
    EXPECT_TRUE(range.ok()) << range.status();
    std::vector<ShareableHandle> handles;
    handles.push_back(std::move(handle));
    map_status_ = (*range)->Map(std::move(handles), {bytes});
    return *std::move(range);
  }

  uint64_t FreeBytes() { return allocator_->FreeBytes().value(); }

  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Mapper> mapper_;
  absl::Status map_status_;
};

TEST_F(HostDevice, CapacityIsCheckedAndRoundedDown) {
  EXPECT_EQ(OpenHostAllocator({.capacity_bytes = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenHostAllocator({.capacity_bytes = UINT64_MAX}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto odd = OpenHostAllocator({.capacity_bytes = 3 * kSlab + 1, .uuid = "h"});
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ((*odd)->info().total_bytes, 3 * kSlab);
  EXPECT_EQ((*odd)->info().uuid, "h");
}

TEST_F(HostDevice, SlabsAreSealedBeforeTheyLeave) {
  const CreatedSlab slab = Create(kSlab);
  EXPECT_EQ(fcntl(FdOf(slab), F_GET_SEALS) &
                (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_WRITE),
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(ftruncate(FdOf(slab), 0), 0);
  EXPECT_NE(ftruncate(FdOf(slab), 2 * kSlab), 0);
  EXPECT_NE(fcntl(FdOf(slab), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(fcntl(FdOf(slab), F_GETFD), FD_CLOEXEC);
}

TEST_F(HostDevice, UnsealedMemfdIsRefused) {
  base::UniqueFd memfd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), kSlab), 0);
  MapOne(std::move(memfd), kSlab);
  EXPECT_EQ(map_status_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(map_status_.message()), HasSubstr("sealed"));
}

TEST_F(HostDevice, MemfdSealedAgainstShrinkingAloneIsRefused) {
  base::UniqueFd memfd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), kSlab), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  MapOne(std::move(memfd), kSlab);
  EXPECT_EQ(map_status_.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostDevice, SealedMemfdThatIsTooSmallIsRefused) {
  base::UniqueFd memfd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), kSlab - 4096), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  MapOne(std::move(memfd), kSlab);
  EXPECT_EQ(map_status_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(map_status_.message()), HasSubstr("smaller"));
}

TEST_F(HostDevice, WriteProtectedMemfdIsRefusedAndNothingStaysMapped) {
  base::UniqueFd memfd(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), kSlab), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
            0);
  auto range = mapper_->Reserve(2 * kSlab, {}, Protection::kReadWrite);
  ASSERT_TRUE(range.ok());
  CreatedSlab slab = Create(kSlab);
  std::vector<ShareableHandle> handles;
  handles.push_back(std::move(slab.exported));
  handles.push_back(std::move(memfd));
  EXPECT_FALSE((*range)->Map(std::move(handles), {kSlab, kSlab}).ok());
  ASSERT_TRUE(allocator_->Destroy(slab.key).ok());
  EXPECT_EQ(FreeBytes(), 8 * kSlab) << "the first slab is still mapped";
}

TEST_F(HostDevice, FdInAnUnreadSocketCountsAsHeld) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  base::UniqueFd sender(pair[0]);
  base::UniqueFd receiver(pair[1]);
  CreatedSlab slab = Create(kSlab);
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = FdOf(slab);
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  ASSERT_EQ(sendmsg(sender.get(), &message, 0), 1);
  slab.exported = ShareableHandle();
  ASSERT_TRUE(allocator_->Destroy(slab.key).ok());
  EXPECT_EQ(FreeBytes(), 7 * kSlab);
  receiver.reset();
  sender.reset();
  EXPECT_EQ(FreeBytes(), 8 * kSlab);
}

TEST_F(HostDevice, HeldSlabsCountAgainstTheCapacity) {
  std::vector<std::unique_ptr<MappedRange>> kept;
  for (int i = 0; i < 8; ++i) {
    CreatedSlab slab = Create(kSlab);
    kept.push_back(MapOne(std::move(slab.exported), kSlab));
    ASSERT_TRUE(map_status_.ok()) << map_status_;
    ASSERT_TRUE(allocator_->Destroy(slab.key).ok());
  }
  EXPECT_EQ(FreeBytes(), 0);
  EXPECT_EQ(allocator_->Create(kSlab).status().code(),
            absl::StatusCode::kResourceExhausted);
  kept.pop_back();
  EXPECT_TRUE(allocator_->Create(kSlab).ok()) << "found without FreeBytes()";
}

// The kernel does not count an O_PATH descriptor, so it cannot keep memory
// from us; and it must not keep a tenant's bytes either.
TEST_F(HostDevice, PathDescriptorKeepsNeitherMemoryNorBytes) {
  CreatedSlab slab = Create(kSlab);
  ASSERT_EQ(pwrite(FdOf(slab), "secret", 6, 0), 6);
  base::UniqueFd path(
      open(absl::StrCat("/proc/self/fd/", FdOf(slab)).c_str(), O_PATH));
  ASSERT_TRUE(path.valid());
  slab.exported = ShareableHandle();
  ASSERT_TRUE(allocator_->Destroy(slab.key).ok());
  EXPECT_EQ(FreeBytes(), 8 * kSlab);
  base::UniqueFd again(
      open(absl::StrCat("/proc/self/fd/", path.get()).c_str(), O_RDWR));
  ASSERT_TRUE(again.valid());
  char bytes[6];
  ASSERT_EQ(pread(again.get(), bytes, 6, 0), 6);
  EXPECT_EQ(std::string(bytes, 6), std::string(6, '\0'));
}

TEST_F(HostDevice, ForkedChildDoesNotHoldItsParentsRange) {
  CreatedSlab slab = Create(kSlab);
  auto range = MapOne(std::move(slab.exported), kSlab);
  ASSERT_TRUE(map_status_.ok());
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_fds[1]);
    char byte;
    _exit(static_cast<int>(read(pipe_fds[0], &byte, 1)));
  }
  EXPECT_TRUE(range->Unmap().ok());
  EXPECT_TRUE(allocator_->Destroy(slab.key).ok());
  EXPECT_EQ(FreeBytes(), 8 * kSlab) << "while the child lives";
  close(pipe_fds[0]);
  close(pipe_fds[1]);
  waitpid(child, nullptr, 0);
}

TEST_F(HostDevice, TooFewDescriptorsIsNotTakenForAFullDevice) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t saved = limit.rlim_cur;
  for (rlim_t room = 0; room < 3; ++room) {
    const base::UniqueFd probe(dup(0));
    limit.rlim_cur = static_cast<rlim_t>(probe.get()) + room;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const absl::Status refused = allocator_->Create(kSlab).status();
    limit.rlim_cur = saved;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (room < 2) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kInternal) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("ulimit -n"));
      EXPECT_EQ(FreeBytes(), 8 * kSlab);
    }
  }
}

TEST_F(HostDevice, RangeIsRefusedToAGpu) {
  EXPECT_EQ(mapper_->Reserve(kSlab, {"GPU-0"}, Protection::kReadWrite)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(mapper_->Reserve(kSlab, {"host-1"}, Protection::kReadWrite).ok());
}

TEST_F(HostDevice, MapOntoAMappedRangeIsRefused) {
  CreatedSlab slab = Create(kSlab);
  CreatedSlab other = Create(kSlab);
  auto range = MapOne(std::move(slab.exported), kSlab);
  ASSERT_TRUE(map_status_.ok());
  std::vector<ShareableHandle> handles;
  handles.push_back(std::move(other.exported));
  EXPECT_EQ(range->Map(std::move(handles), {kSlab}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(HostDevice, FaultyAllocatorFailsTheChosenCalls) {
  using Op = FaultyAllocator::Op;
  FaultyAllocator faulty(std::move(allocator_));
  faulty.FailOnce(Op::kCreate, 2, absl::UnavailableError("lost"));
  EXPECT_TRUE(faulty.Create(kSlab).ok());
  EXPECT_EQ(faulty.Create(kSlab).status(), absl::UnavailableError("lost"));
  EXPECT_TRUE(faulty.Create(kSlab).ok());
  faulty.FailFrom(Op::kFreeBytes, 1, absl::InternalError("broken"));
  EXPECT_FALSE(faulty.FreeBytes().ok());
  EXPECT_FALSE(faulty.FreeBytes().ok());
  faulty.Heal();
  EXPECT_EQ(faulty.FreeBytes().value(), 6 * kSlab);
  faulty.SetOutsideBytes(5 * kSlab);
  EXPECT_EQ(faulty.FreeBytes().value(), kSlab);
  EXPECT_TRUE(faulty.Create(kSlab).ok());
  EXPECT_EQ(faulty.Create(kSlab).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(faulty.calls(Op::kCreate), 5);
}

}  // namespace
}  // namespace gmb::device
