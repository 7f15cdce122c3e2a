#ifndef GMB_BROKER_CORE_OPENED_SESSION_H_
#define GMB_BROKER_CORE_OPENED_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "broker/core/outbox.h"
#include "device/handle.h"

namespace gmb::broker {

// A peer that has greeted is told and given this.
struct OpenedSession {
  uint64_t id = 0;
  std::string token;   // 16 random bytes
  std::string tenant;  // empty for an operator
  std::vector<device::DeviceInfo> devices;
  std::vector<std::string> warnings;
  uint64_t host_pool_bytes = 0;  // 0: there is none
  base::UniqueFd gate_page;      // to be sent; none for an operator
  std::shared_ptr<Outbox> outbox;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_OPENED_SESSION_H_
