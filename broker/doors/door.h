#ifndef GMB_BROKER_DOORS_DOOR_H_
#define GMB_BROKER_DOORS_DOOR_H_

#include <compare>
#include <string>

#include "broker/machine/origin.h"

namespace gmb::broker {

// A socket directory, as the place that a peer came by.
struct Door {
  Origin origin = Origin::kShared;
  std::string tenant = {};  // with Origin::kTenantDirectory

  friend auto operator<=>(const Door&, const Door&) = default;
};

// To the FdDisposer, which closes a door's sockets one at a time.
[[nodiscard]] inline std::string NameOf(const Door& door) {
  switch (door.origin) {
    case Origin::kTenantDirectory:
      return "tenants/" + door.tenant;
    case Origin::kShared:
      return "shared";
    case Origin::kAdmin:
      return "admin";
  }
  return "";
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_DOOR_H_
