#ifndef GMB_KEEPER_BACKGROUND_H_
#define GMB_KEEPER_BACKGROUND_H_

#include <optional>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::keeper {

// A process that goes on in the background once it serves, so that whoever
// started it knows when that is.
class Background {
 public:
  // Before the first thread starts. In the process that goes on there is no
  // value; in the one that was started, which waits until the other one serves
  // or ends, there is its exit code.
  static absl::StatusOr<std::optional<int>> Enter(Background* background);

  // It serves.
  void Tell();

 private:
  base::UniqueFd tell_;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_BACKGROUND_H_
