#ifndef GMB_BROKER_DAEMON_FILE_WATCH_H_
#define GMB_BROKER_DAEMON_FILE_WATCH_H_

#include <sys/inotify.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace gmb::broker {

// The marks by which a file's contents are told apart.
struct FileMark {
  std::string inode;  // empty: the file is not there
  std::string contents;

  friend bool operator==(const FileMark&, const FileMark&) = default;
};

// Notices that files have other contents. It watches their folders, and looks
// at the files when something happens there: a file that is put in another's
// place, or behind a symbolic link that is swapped (a Kubernetes ConfigMap), is
// another file. One that is being written counts when it is closed; one that is
// gone does not.
class FileWatch {
 public:
  // `changed` is called on a thread of its own, once for changes that come
  // together. RESOURCE_EXHAUSTED and the like: the system has no watches left.
  static absl::StatusOr<std::unique_ptr<FileWatch>> Start(
      const std::set<std::string>& files, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // In place of the files that it has watched. Returns whether it did not watch
  // one of them before: what was written into that since it was read is not
  // noticed. Thread-safe. The error is that of the first folder that cannot be
  // watched; the others are.
  absl::StatusOr<bool> Watch(const std::set<std::string>& files);

 private:
  FileWatch(base::UniqueFd inotify, base::UniqueFd stop,
            std::function<void()> changed);
  void Run();
  // Whether something happened that can have changed a file.
  bool ReadEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  [[nodiscard]] bool IsWorthALook(const inotify_event& event) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Empty: of no folder that is watched, or of none of its files.
  [[nodiscard]] std::string PathOf(const inotify_event& event) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether one of the files is another than it was.
  bool LookAtFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const base::UniqueFd inotify_;
  const base::UniqueFd stop_;  // an eventfd
  const std::function<void()> changed_;
  base::Mutex mu_;
  std::map<std::string, FileMark> marks_ ABSL_GUARDED_BY(mu_);
  // The inodes that were closed after writing, since the last look.
  std::set<std::string> closed_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> folders_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_FILE_WATCH_H_
