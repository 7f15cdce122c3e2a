#ifndef GMB_TESTS_ATTACK_ODD_FILES_H_
#define GMB_TESTS_ATTACK_ODD_FILES_H_

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace gmb::attack {

struct OddFile {
  std::string kind;
  base::UniqueFd fd;
};

// A file of every odd kind that this machine makes. Those that it does not make
// are left out.
[[nodiscard]] std::vector<OddFile> MakeOddFiles();

// Two sockets, each of which lies unread in the other, and nobody else's: what
// only the kernel's collector finds. One that is not such a cycle yet is in
// `ends`, both of them.
struct SocketPair {
  base::UniqueFd ends[2];
};
[[nodiscard]] SocketPair MakeSocketPair(int type);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_ODD_FILES_H_
