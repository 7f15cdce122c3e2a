#ifndef GMB_BROKER_SERVER_TENANT_DOORS_H_
#define GMB_BROKER_SERVER_TENANT_DOORS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace gmb::broker {

// Opens and closes the socket directory of a tenant. Called on the operators'
// thread.
struct TenantDoors {
  std::function<absl::Status(const std::string& tenant)> open;
  std::function<absl::Status(const std::string& tenant)> close;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_TENANT_DOORS_H_
