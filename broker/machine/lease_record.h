#ifndef GMB_BROKER_MACHINE_LEASE_RECORD_H_
#define GMB_BROKER_MACHINE_LEASE_RECORD_H_

#include <cstdint>

namespace gmb::broker {

// One fixed-size record: what a successor needs to adopt a lease.
struct LeaseRecord {
  uint64_t lease = 0;
  uint64_t session = 0;
  uint64_t tenant = 0;
  uint64_t pool = 0;
  uint64_t bytes = 0;
  uint32_t slabs = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_RECORD_H_
