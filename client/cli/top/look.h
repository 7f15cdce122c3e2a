#ifndef GMB_CLIENT_CLI_TOP_LOOK_H_
#define GMB_CLIENT_CLI_TOP_LOOK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli::top {

// Bytes that events told of since the broker was first looked at.
struct Moved {
  uint64_t evicted_bytes = 0;
  uint64_t restored_bytes = 0;
};
// By tenant and device.
using MovedByPool = std::map<std::pair<std::string, std::string>, Moved>;

// The broker as it was at one moment; its lists are asked for one after the
// other, while it goes on.
struct Look {
  absl::Time at;
  v1::GetStatusResponse status;
  v1::ListTenantsResponse tenants;
  v1::ListSessionsResponse sessions;
  MovedByPool moved;
};

// All that is known of the broker.
struct Sight {
  std::shared_ptr<const Look> look;    // the latest; null: none yet
  std::shared_ptr<const Look> before;  // of the same broker; null: none
  std::deque<v1::Event> moves;         // the latest last
  absl::Status trouble;                // why there is no newer look; OK: none
  absl::Time trouble_since;
};

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_LOOK_H_
