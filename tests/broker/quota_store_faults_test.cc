// The disk fails at the k-th call that SQLite makes to it, and from there on:
// what is said to be done is on the disk, and what is not is not.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "broker/store/quota_store.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

// Calls of SQLite's that can be made to fail.
enum class Call { kOpen, kWrite, kUnlink, kSyncDirectory, kRead };

// SQLite calls plain functions, so this is the process's.
struct Disk {
  Call call = Call::kOpen;
  int error = EIO;
  uint64_t calls = 0;
  uint64_t first = 1;
  uint64_t last = 0;
  // Once a call has failed, nothing can be read either.
  bool then_unreadable = false;
};
Disk& TheDisk() {
  static Disk disk;
  return disk;
}

// The error of a call that fails, or 0.
int ErrorOf(Call call) {
  Disk& disk = TheDisk();
  if (call == Call::kRead) {
    const bool has_failed = disk.calls >= disk.first && disk.last > 0;
    return disk.then_unreadable && has_failed ? disk.error : 0;
  }
  if (disk.call != call) return 0;
  ++disk.calls;
  return disk.first <= disk.calls && disk.calls <= disk.last ? disk.error : 0;
}

// Takes the place of SQLite's own function, which Next calls.
template <Call kCall, typename Function>
struct Hook;
template <Call kCall, typename Result, typename... Arguments>
struct Hook<kCall, Result (*)(Arguments...)> {
  static inline Result (*next)(Arguments...) = nullptr;
  static Result Run(Arguments... arguments) {
    if (const int error = ErrorOf(kCall); error != 0) {
      errno = error;
      return -1;
    }
    return next(arguments...);
  }
};

template <Call kCall, typename Function>
void Install(const char* name) {
  using Its = Hook<kCall, Function>;
  sqlite3_vfs* const vfs = ::sqlite3_vfs_find(nullptr);
  Its::next = reinterpret_cast<Function>(vfs->xGetSystemCall(vfs, name));
  if (Its::next == nullptr) return;  // not of this SQLite
  vfs->xSetSystemCall(vfs, name,
                      reinterpret_cast<sqlite3_syscall_ptr>(&Its::Run));
}

using OpensDirectory = int (*)(const char*, int*);
OpensDirectory next_open_directory = nullptr;

// That one can't be opened is forgiven, that it can't be synced is not.
int OpenDirectory(const char* path, int* fd) {
  if (ErrorOf(Call::kSyncDirectory) == 0) return next_open_directory(path, fd);
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return SQLITE_CANTOPEN;
  ::close(pipe[1]);
  *fd = pipe[0];  // no pipe can be synced
  return SQLITE_OK;
}

void InstallAll() {
  using Path = int (*)(const char*);
  using Opens = int (*)(const char*, int, int);
  using Writes = ssize_t (*)(int, const void*, size_t);
  using Reads = ssize_t (*)(int, void*, size_t);
  using ReadsAt = ssize_t (*)(int, void*, size_t, off_t);
  using WritesAt = ssize_t (*)(int, const void*, size_t, off_t);
  Install<Call::kOpen, Opens>("open");
  Install<Call::kWrite, Writes>("write");
  Install<Call::kWrite, WritesAt>("pwrite64");
  Install<Call::kUnlink, Path>("unlink");
  Install<Call::kRead, Reads>("read");
  Install<Call::kRead, ReadsAt>("pread");
  Install<Call::kRead, ReadsAt>("pread64");
  sqlite3_vfs* const vfs = ::sqlite3_vfs_find(nullptr);
  next_open_directory = reinterpret_cast<OpensDirectory>(
      vfs->xGetSystemCall(vfs, "openDirectory"));
  vfs->xSetSystemCall(vfs, "openDirectory",
                      reinterpret_cast<sqlite3_syscall_ptr>(&OpenDirectory));
}

// In memory where there is such a file system: hundreds of databases are synced
// many times each.
class QuickDirectory {
 public:
  QuickDirectory() {
    for (const char* const root : {"/dev/shm", "/tmp"}) {
      std::string path = absl::StrCat(root, "/gmb-test-XXXXXX");
      if (::mkdtemp(path.data()) == nullptr) continue;
      path_ = path;
      return;
    }
  }
  ~QuickDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  QuickDirectory(const QuickDirectory&) = delete;
  QuickDirectory& operator=(const QuickDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string Database() const { return path_ + "/gmb.db"; }

 private:
  std::string path_;
};

AuditRecord Did(const std::string& action) {
  return {absl::UnixEpoch(), "uid 0, pid 4711 (gmb)", action, "a", ""};
}

TenantPolicy Policy(const std::string& name, uint64_t limit) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota.limit = quota::Amount::Bytes(limit);
  return policy;
}

class QuotaStoreFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstallAll();
    TheDisk() = {};
    const auto store = QuotaStore::Open(directory_.path());
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->PutTenant(Policy("a", 1), Did("make")).ok());
  }
  void TearDown() override {
    TheDisk() = {};
    sqlite3_vfs* const vfs = ::sqlite3_vfs_find(nullptr);
    vfs->xSetSystemCall(vfs, nullptr, nullptr);
  }

  // Whether a change made a k-th call.
  bool ChangeOnce(Call call, int error, uint64_t k, bool all) {
    const QuickDirectory copy;
    std::filesystem::copy_file(directory_.Database(), copy.Database());
    auto store = *QuotaStore::Open(copy.path());
    const Declared before = store->GetDeclared();
    TheDisk() = {
        .call = call, .error = error, .first = k, .last = all ? UINT64_MAX : k};
    const absl::Status put = store->PutTenant(Policy("b", 2), Did("make"));
    const uint64_t calls = TheDisk().calls;
    refused_ += put.ok() ? 0 : 1;
    // What operators do in trouble is done, once.
    int acted = 0;
    const absl::Status audited = store->Audit(
        Did("drain"),
        [&] {
          ++acted;
          return absl::OkStatus();
        },
        QuotaStore::OnBadDisk::kActAnyway);
    EXPECT_TRUE(audited.ok()) << audited;
    EXPECT_EQ(acted, 1);
    TheDisk().last = 0;
    const Declared said = store->GetDeclared();
    EXPECT_EQ(said == before, !put.ok()) << put;
    // As after a death at this moment, and then with one change more.
    EXPECT_TRUE(OnDisk(copy.path()) == said) << put;
    const absl::Status next = store->PutTenant(Policy("b", 3), Did("set"));
    EXPECT_TRUE(next.ok()) << next;
    EXPECT_TRUE(store->PutTenant(Policy("c", 4), Did("make")).ok());
    EXPECT_TRUE(OnDisk(copy.path()) == store->GetDeclared());
    return k <= calls;
  }

  void Sweep(Call call, int error) {
    for (const bool all : {false, true}) {
      const size_t fds = testing::OpenFds();
      uint64_t k = 1;
      for (bool had_it = true; had_it && k < 100; ++k) {
        SCOPED_TRACE(absl::StrCat("errno ", error, ", call ", k,
                                  all ? " and all after it" : ""));
        had_it = ChangeOnce(call, error, k, all);
        if (HasFailure()) return;
      }
      EXPECT_GT(k, 2U) << "there are no such calls";
      EXPECT_EQ(testing::OpenFds(), fds);
    }
  }

  static Declared OnDisk(const std::string& directory) {
    const auto store = QuotaStore::Open(directory);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? (*store)->GetDeclared() : Declared();
  }

  const QuickDirectory directory_;
  uint64_t refused_ = 0;
};

TEST_F(QuotaStoreFaultsTest, ADiskThatIsFull) {
  Sweep(Call::kWrite, ENOSPC);
  EXPECT_GT(refused_, 4U);
}

TEST_F(QuotaStoreFaultsTest, ADiskThatIsReadOnlyOrHasNoFdForIt) {
  Sweep(Call::kOpen, EROFS);
  EXPECT_GT(refused_, 1U);
  Sweep(Call::kOpen, EMFILE);
}

TEST_F(QuotaStoreFaultsTest, ADiskThatIsBroken) {
  Sweep(Call::kWrite, EIO);
  Sweep(Call::kUnlink, EIO);
  EXPECT_GT(refused_, 4U);
}

// The last step, after which all is on the disk.
TEST_F(QuotaStoreFaultsTest, ADirectoryThatCanNotBeSynced) {
  Sweep(Call::kSyncDirectory, EIO);
}

// What was refused is on the disk, and cannot be read back: whoever looks at the
// store later, or stops the broker in order, has it taken out again.
TEST_F(QuotaStoreFaultsTest, ARefusedChangeThatIsOnTheDiskIsTakenBack) {
  using Use = void (*)(QuotaStore*);
  const std::array<Use, 4> uses = {
      [](QuotaStore* store) { EXPECT_TRUE(store->CheckDisk().ok()); },
      [](QuotaStore* store) { EXPECT_TRUE(store->ListAudit(1).ok()); },
      [](QuotaStore* store) {
        const auto nothing = [] { return absl::OkStatus(); };
        EXPECT_TRUE(store->Audit(Did("drain"), nothing).ok());
      },
      nullptr};  // an orderly stop
  for (const Use use : uses) {
    const QuickDirectory copy;
    std::filesystem::copy_file(directory_.Database(), copy.Database());
    auto store = *QuotaStore::Open(copy.path());
    const Declared before = store->GetDeclared();
    TheDisk() = {.call = Call::kSyncDirectory,
                 .last = UINT64_MAX,
                 .then_unreadable = true};
    EXPECT_FALSE(store->PutTenant(Policy("b", 2), Did("make")).ok());
    TheDisk() = {};
    EXPECT_FALSE(OnDisk(copy.path()) == before) << "it came to nothing";
    if (use != nullptr) {
      use(store.get());
    } else {
      store.reset();
    }
    EXPECT_TRUE(OnDisk(copy.path()) == before);
  }
}

}  // namespace
}  // namespace gmb::broker
