// The owner of tenants' socket directories swaps their sockets for links to
// what belongs to others: again and again, and at the moment at which they are
// made.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "tests/attack/attack.h"

namespace gmb::attack {
namespace {

constexpr char kAside[] = "aside";

// One name of the directory, for a moment something else.
void Swap(int directory, const std::string& name, const std::string& target) {
  (void)::renameat(directory, name.c_str(), directory, kAside);
  (void)::symlinkat(target.c_str(), directory, name.c_str());
  (void)::unlinkat(directory, name.c_str(), 0);
  (void)::mkdirat(directory, name.c_str(), 0777);
  (void)::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
  (void)::renameat(directory, kAside, directory, name.c_str());
  (void)::unlinkat(directory, kAside, 0);
}

// Waits for the socket and puts the link in its place, which lies ready: one
// call, so that it comes before the broker's next one. False: it has to end.
bool Ambush(Attack& attack, int directory, const std::string& name) {
  struct stat made {};
  while (::fstatat(directory, name.c_str(), &made, AT_SYMLINK_NOFOLLOW) != 0) {
    if (!attack.GoesOn()) return false;
  }
  (void)::renameat(directory, kAside, directory, name.c_str());
  attack.Count("ambushed");
  return true;
}

void LieInWait(int directory, const std::string& name,
               const std::string& target) {
  (void)::unlinkat(directory, name.c_str(), 0);
  (void)::symlinkat(target.c_str(), directory, kAside);
}

}  // namespace

absl::Status LinkRaces(Attack& attack) {
  const AttackOptions& options = attack.options();
  const std::vector<std::string> targets = {
      options.path, "../../admin/handle.sock", "../../admin", "../.."};
  uint64_t turn = 0;
  while (attack.GoesOn()) {
    const int directory =
        ::open(options.socket_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) continue;  // its tenant is deleted for now
    for (const std::string name : {"handle.sock", "gmb.sock", ".gmb.sock.new"})
      Swap(directory, name, targets[turn % targets.size()]);
    ::close(directory);
    ++turn;
    attack.Count("swaps");
  }
  return absl::OkStatus();
}

// Of the directories SOCKET_DIR0, SOCKET_DIR1, ... in the order in which the
// broker makes their sockets.
absl::Status LinkAmbush(Attack& attack) {
  const AttackOptions& options = attack.options();
  std::vector<base::UniqueFd> directories;
  for (int i = 0; i < options.connections; ++i) {
    const std::string path = absl::StrCat(options.socket_dir, i);
    directories.emplace_back(
        ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directories.back().valid())
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot enter ", path));
    LieInWait(directories.back().get(), options.socket, options.path);
  }
  while (attack.GoesOn()) {
    for (const base::UniqueFd& directory : directories) {
      if (!Ambush(attack, directory.get(), options.socket))
        return absl::OkStatus();
    }
    attack.Count("rounds");
    ::poll(nullptr, 0, 100);  // for as long as the broker starts
    for (const base::UniqueFd& directory : directories)
      LieInWait(directory.get(), options.socket, options.path);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
