#ifndef GMB_BROKER_MACHINE_FILE_CHANGE_H_
#define GMB_BROKER_MACHINE_FILE_CHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "broker/machine/tenant.h"

namespace gmb::broker {

// The changes of tenants that a configuration file makes when it is read while
// the broker runs, as one change.
struct FileChange {
  std::vector<TenantPolicy> tenants;  // new ones, and those that change
  std::vector<std::string> leaving;   // no more in the file, to be seen off
  // So much of it may be taken from processes, in all; the rest is held back.
  uint64_t may_reclaim_bytes = 0;
};

// A part of a file's change that was not made, since it takes more than it may.
struct HeldBack {
  std::string tenant;
  std::string device;  // whose limit stays; empty: the tenant itself stays
  uint64_t bytes = 0;  // that it would take from processes

  friend bool operator==(const HeldBack&, const HeldBack&) = default;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_FILE_CHANGE_H_
