#ifndef GMB_BROKER_KEEPING_FETCHED_H_
#define GMB_BROKER_KEEPING_FETCHED_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/keeping/keeper_client.h"
#include "keeper/link/keeper_link.h"

namespace gmb::broker {

using ShareFd = std::function<SharedFd(base::UniqueFd)>;

// All that the keeper has, page after page, in the order in which it was put.
// DATA_LOSS where fds, names, order or the number of entries are not as they
// should be.
absl::StatusOr<std::vector<Kept>> FetchAll(keeper::KeeperLink* link,
                                           const ShareFd& share);

// DATA_LOSS if two of the fds are the same open file: one of two slabs is not
// there then. The kernel orders open files for that; one that does not (no
// kcmp) finds nothing.
absl::Status CheckDistinct(const std::vector<Kept>& all);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_FETCHED_H_
