#ifndef GMB_TESTS_IPC_SILENT_FILES_H_
#define GMB_TESTS_IPC_SILENT_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::testing {

// Files of a FUSE server, a process of its own, that never writes what was
// changed in them. A process that drops the last reference to such a file waits
// for the server, and no signal ends that, SIGKILL neither. The process must be
// root's. Mount gives the calling thread a mount namespace of its own; nothing
// stays mounted.
class SilentFiles {
 public:
  // Mounts over a new directory in `directory`. FAILED_PRECONDITION where this
  // machine or user may not.
  static absl::StatusOr<std::unique_ptr<SilentFiles>> Mount(
      const std::string& directory);
  // Ends the server: everybody who waits for it goes on.
  ~SilentFiles();
  SilentFiles(const SilentFiles&) = delete;
  SilentFiles& operator=(const SilentFiles&) = delete;

  // A new file, for which nobody waits yet: send it, and close it here.
  // Invalid: errno says why.
  [[nodiscard]] base::UniqueFd Open();
  // Changes something in that file, by another fd.
  void ChangeLast();

 private:
  SilentFiles(base::UniqueFd root, pid_t server, base::UniqueFd alive)
      : root_(std::move(root)), server_(server), alive_(std::move(alive)) {}
  [[nodiscard]] base::UniqueFd OpenLast() const;

  const base::UniqueFd root_;
  const pid_t server_;
  base::UniqueFd alive_;  // the server ends with it
  uint64_t last_ = 0;
  std::vector<base::UniqueFd> changed_;
};

}  // namespace gmb::testing

#endif  // GMB_TESTS_IPC_SILENT_FILES_H_
