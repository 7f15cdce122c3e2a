#ifndef GMB_TESTS_BROKER_FAULTY_DISK_H_
#define GMB_TESTS_BROKER_FAULTY_DISK_H_

#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gmb::broker {

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
inline Disk& TheDisk() {
  static Disk disk;
  return disk;
}

// The error of a call that fails, or 0.
inline int ErrorOf(Call call) {
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
inline OpensDirectory next_open_directory = nullptr;

// That one can't be opened is forgiven, that it can't be synced is not.
inline int OpenDirectory(const char* path, int* fd) {
  if (ErrorOf(Call::kSyncDirectory) == 0) return next_open_directory(path, fd);
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return SQLITE_CANTOPEN;
  ::close(pipe[1]);
  *fd = pipe[0];  // no pipe can be synced
  return SQLITE_OK;
}

inline void InstallAll() {
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

// SQLite's own functions again.
inline void UninstallAll() {
  TheDisk() = {};
  sqlite3_vfs* const vfs = ::sqlite3_vfs_find(nullptr);
  vfs->xSetSystemCall(vfs, nullptr, nullptr);
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

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_FAULTY_DISK_H_
