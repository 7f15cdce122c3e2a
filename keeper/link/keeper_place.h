#ifndef GMB_KEEPER_LINK_KEEPER_PLACE_H_
#define GMB_KEEPER_LINK_KEEPER_PLACE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::keeper {

// Where a keeper's socket lies: a directory of this process's user that nobody
// else can enter (0700). It is held open, so that nobody can put another one in
// its place between a look and the next step. Move-only.
class KeeperPlace {
 public:
  // Of the socket at `path`. `make`: the directory is made if it is missing,
  // but nothing above it. UNAVAILABLE: it is missing. FAILED_PRECONDITION: it
  // is a symbolic link, somebody else's, or open to others.
  static absl::StatusOr<KeeperPlace> Open(const std::string& path, bool make);

  // A path to the same socket by way of the open directory; good as long as
  // this object lives.
  [[nodiscard]] std::string socket() const;
  // As it was given, for messages.
  [[nodiscard]] const std::string& path() const { return path_; }

  // One keeper a directory, for this object's life. ALREADY_EXISTS: there is
  // another one.
  [[nodiscard]] absl::Status Lock() const;
  // The open directory, and the lock with it: a process with a duplicate has
  // both.
  [[nodiscard]] int directory() const { return directory_.get(); }
  // The lock of another process, by a duplicate. FAILED_PRECONDITION: it is of
  // another directory.
  [[nodiscard]] absl::Status TakeLock(base::UniqueFd directory);

 private:
  KeeperPlace(std::string path, std::string name, base::UniqueFd directory)
      : path_(std::move(path)),
        name_(std::move(name)),
        directory_(std::move(directory)) {}

  std::string path_;
  std::string name_;  // of the socket in its directory
  base::UniqueFd directory_;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_LINK_KEEPER_PLACE_H_
