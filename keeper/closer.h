#ifndef GMB_KEEPER_CLOSER_H_
#define GMB_KEEPER_CLOSER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "ipc/fd_disposer.h"

namespace gmb::keeper {

// Closes what was kept. A client's connection among it has whatever its client
// has sent last, fds of any kind, and to close those can take as long as that
// client likes (ipc/foreign_fds.h). So only what is certain to be quick is
// closed here, and the rest by the disposer: each name on its own, so that none
// waits for another. Not thread-safe.
class Closer {
 public:
  explicit Closer(ipc::FdDisposer* disposer) : disposer_(disposer) {}

  // Memory files are closed when this returns.
  void Close(std::vector<base::UniqueFd> fds, absl::string_view key);

 private:
  ipc::FdDisposer* const disposer_;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_CLOSER_H_
