#ifndef GMB_TESTS_ATTACK_FUSE_FILE_H_
#define GMB_TESTS_ATTACK_FUSE_FILE_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipc/unique_fd.h"

namespace gmb::attack {

// A file whose server, a process of its own, lets it be opened and answers
// nothing after that: whoever closes it waits for the server. In a mount
// namespace of this process, which must be root's and have no threads.
class FuseFile {
 public:
  // Mounted over a new file in `directory`. FAILED_PRECONDITION where this
  // machine or user may not.
  static absl::StatusOr<std::unique_ptr<FuseFile>> Mount(
      const std::string& directory);
  // Ends the server: everybody who waits for it goes on.
  ~FuseFile();
  FuseFile(const FuseFile&) = delete;
  FuseFile& operator=(const FuseFile&) = delete;

  // To be sent and not closed here: that would wait, too. The server's end
  // closes them.
  [[nodiscard]] int Open();

 private:
  FuseFile(std::string path, pid_t server, ipc::UniqueFd alive)
      : path_(std::move(path)), server_(server), alive_(std::move(alive)) {}

  const std::string path_;
  const pid_t server_;
  ipc::UniqueFd alive_;  // the server ends with it
  std::vector<ipc::UniqueFd> open_;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_FUSE_FILE_H_
