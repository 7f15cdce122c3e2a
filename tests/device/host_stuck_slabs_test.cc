// Slabs of which the host device cannot tell whether somebody holds them: a
// client with rights can do that to its own, and must not do it to others.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "device/devices.h"

namespace gmb::device {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStuckSlab = uint64_t{2} << 20;
constexpr uint64_t kSlabs = 8;
constexpr uid_t kBroker = 65534;

// This thread without root's rights, as the broker of an ordinary user is.
class AsBroker {
 public:
  AsBroker() : changed_(geteuid() == 0 && SetUser(kBroker)) {}
  ~AsBroker() {
    if (changed_ && !SetUser(0)) abort();
  }
  AsBroker(const AsBroker&) = delete;
  AsBroker& operator=(const AsBroker&) = delete;

 private:
  // The C library's would change all threads, and interrupt them for that.
  static bool SetUser(uid_t user) {
    return syscall(SYS_setresuid, -1, user, -1) == 0;
  }
  const bool changed_;
};

class HostStuckSlabs : public testing::Test {
 protected:
  void SetUp() override {
    const AsBroker broker;
    allocator_ =
        OpenHostAllocator({.capacity_bytes = kSlabs * kStuckSlab}).value();
  }

  struct Slab {
    SlabKey key;
    base::UniqueFd fd;  // the client's
  };
  Slab Create() {
    const AsBroker broker;
    CreatedSlab slab = allocator_->Create(kStuckSlab).value();
    return {slab.key, std::get<base::UniqueFd>(std::move(slab.exported))};
  }
  absl::Status Destroy(const Slab& slab) {
    const AsBroker broker;
    return allocator_->Destroy(slab.key);
  }
  uint64_t FreeSlabs() {
    const AsBroker broker;
    return allocator_->FreeBytes().value() / kStuckSlab;
  }
  // Those that are stuck, of all that are held.
  std::vector<HeldSlab> Stuck() {
    std::vector<HeldSlab> stuck;
    for (HeldSlab& slab : allocator_->Held()) {
      if (!slab.stuck.empty()) stuck.push_back(std::move(slab));
    }
    return stuck;
  }
  // Of a slab that nobody has open any more: through what the kernel does not
  // count.
  static base::UniqueFd PathOf(const Slab& slab) {
    return base::UniqueFd(
        open(absl::StrCat("/proc/self/fd/", slab.fd.get()).c_str(), O_PATH));
  }
  static void GiveTo(uid_t owner, const base::UniqueFd& path) {
    ASSERT_EQ(
        fchownat(path.get(), "", owner, static_cast<gid_t>(-1), AT_EMPTY_PATH),
        0);
  }

  std::unique_ptr<Allocator> allocator_;
};

TEST_F(HostStuckSlabs,
       OneOfAnotherOwnerHoldsUpNoOtherAndComesBackWithItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root changes a file's owner";
  Slab stuck = Create();
  Slab other = Create();
  const base::UniqueFd path = PathOf(stuck);
  ASSERT_TRUE(Destroy(stuck).ok());
  ASSERT_TRUE(Destroy(other).ok());
  EXPECT_EQ(FreeSlabs(), kSlabs - 2);
  EXPECT_EQ(allocator_->Held().size(), 2);
  EXPECT_EQ(Stuck().size(), 0);

  GiveTo(0, path);
  stuck.fd.reset();
  other.fd.reset();
  EXPECT_EQ(FreeSlabs(), kSlabs - 1) << "the other one's are back";
  ASSERT_EQ(Stuck().size(), 1);
  EXPECT_EQ(Stuck()[0].key, stuck.key);
  EXPECT_EQ(Stuck()[0].bytes, kStuckSlab);
  EXPECT_THAT(Stuck()[0].stuck, HasSubstr(absl::StrCat("chown ", kBroker)));
  std::vector<Slab> all;
  while (all.size() < kSlabs - 1) all.push_back(Create());

  GiveTo(kBroker, path);
  all.push_back(Create());
  EXPECT_EQ(allocator_->Held().size(), 0);
}

TEST_F(HostStuckSlabs, ToDestroyOneIsNoFailure) {
  if (geteuid() != 0) GTEST_SKIP() << "only root changes a file's owner";
  Slab slab = Create();
  ASSERT_EQ(fchown(slab.fd.get(), 0, 0), 0);
  slab.fd.reset();
  const absl::Status destroyed = Destroy(slab);
  EXPECT_TRUE(destroyed.ok()) << destroyed;
  EXPECT_EQ(FreeSlabs(), kSlabs - 1);
  EXPECT_EQ(Stuck().size(), 1);
}

// Its contents cannot be dropped, so that a descriptor that the kernel does not
// count would find them.
TEST_F(HostStuckSlabs, AnImmutableOneHoldsUpNoOther) {
  Slab stuck = Create();
  Slab other = Create();
  ASSERT_TRUE(Destroy(stuck).ok());
  ASSERT_TRUE(Destroy(other).ok());
  int flags = FS_IMMUTABLE_FL;
  if (ioctl(stuck.fd.get(), FS_IOC_SETFLAGS, &flags) != 0)
    GTEST_SKIP() << "no memfd can be made immutable here: " << strerror(errno);
  const base::UniqueFd path = PathOf(stuck);
  stuck.fd.reset();
  other.fd.reset();
  EXPECT_EQ(FreeSlabs(), kSlabs - 1);
  ASSERT_EQ(Stuck().size(), 1);
  EXPECT_THAT(Stuck()[0].stuck, HasSubstr("immutable"));

  base::UniqueFd again(
      open(absl::StrCat("/proc/self/fd/", path.get()).c_str(), O_RDONLY));
  flags = 0;
  ASSERT_EQ(ioctl(again.get(), FS_IOC_SETFLAGS, &flags), 0);
  again.reset();
  EXPECT_EQ(FreeSlabs(), kSlabs);
}

// A page that comes when the test says so; a process that writes from it into a
// file keeps the lock of that file until then.
class AbsentPage {
 public:
  AbsentPage()
      : faults_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC))),
        page_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    uffdio_api api = {};
    api.api = UFFD_API;
    uffdio_register watched = {};
    watched.range = Range();
    watched.mode = UFFDIO_REGISTER_MODE_MISSING;
    ready_ = ioctl(faults_.get(), UFFDIO_API, &api) == 0 &&
             ioctl(faults_.get(), UFFDIO_REGISTER, &watched) == 0;
  }
  ~AbsentPage() { munmap(page_, kPage); }
  AbsentPage(const AbsentPage&) = delete;
  AbsentPage& operator=(const AbsentPage&) = delete;

  static constexpr size_t kPage = 4096;
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] const void* data() const { return page_; }
  // Until somebody waits for it.
  void AwaitFault() const {
    uffd_msg fault;
    EXPECT_EQ(read(faults_.get(), &fault, sizeof(fault)), sizeof(fault));
  }
  void Come() const {
    uffdio_zeropage zero = {};
    zero.range = Range();
    EXPECT_EQ(ioctl(faults_.get(), UFFDIO_ZEROPAGE, &zero), 0);
  }

 private:
  [[nodiscard]] uffdio_range Range() const {
    return {reinterpret_cast<uintptr_t>(page_), kPage};
  }
  const base::UniqueFd faults_;
  void* const page_;
  bool ready_ = false;
};

// Why the pages of a slab that may be held are left alone.
TEST_F(HostStuckSlabs, AHolderThatNeverEndsItsWriteKeepsNobodyWaiting) {
  const AbsentPage page;
  if (!page.ready()) GTEST_SKIP() << "userfaultfd is not allowed here";
  const Slab slab = Create();
  if (geteuid() == 0) {
    ASSERT_EQ(fchown(slab.fd.get(), 0, 0), 0);
  }
  std::thread holder([&] {
    EXPECT_EQ(pwrite(slab.fd.get(), page.data(), AbsentPage::kPage, 0),
              AbsentPage::kPage);
  });
  page.AwaitFault();
  std::future<uint64_t> looked = std::async(std::launch::async, [&] {
    EXPECT_TRUE(Destroy(slab).ok());
    return FreeSlabs();
  });
  EXPECT_EQ(looked.wait_for(std::chrono::seconds(20)),
            std::future_status::ready);
  page.Come();
  holder.join();
  EXPECT_EQ(looked.get(), kSlabs - 1);
}

}  // namespace
}  // namespace gmb::device
