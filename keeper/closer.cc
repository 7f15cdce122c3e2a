// The end of what was kept.
#include "keeper/closer.h"

#include <fcntl.h>

#include <utility>

namespace gmb::keeper {
namespace {

// Of tmpfs and hugetlbfs alone, and asked of the kernel without a question to
// any server of the file.
bool IsMemoryFile(int fd) { return ::fcntl(fd, F_GET_SEALS) >= 0; }

}  // namespace

void Closer::Close(std::vector<base::UniqueFd> fds, absl::string_view key) {
  for (base::UniqueFd& fd : fds) {
    if (IsMemoryFile(fd.get())) {
      fd.reset();
    } else {
      disposer_->Dispose(std::move(fd), key);
    }
  }
}

}  // namespace gmb::keeper
