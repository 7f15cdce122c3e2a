#ifndef GMB_BROKER_MACHINE_RECORD_NEWS_H_
#define GMB_BROKER_MACHINE_RECORD_NEWS_H_

#include <cstdint>
#include <vector>

#include "broker/machine/records.h"
#include "quota/units.h"

namespace gmb::broker {

// The things that have been changed since it was last written down; each may be
// named more than once, and may be gone.
struct RecordNews {
  std::vector<quota::LeaseId> leases;
  std::vector<uint64_t> sessions;
  std::vector<quota::PoolId> pools;
  HeadRecord head;  // as it was last written
  bool head_is_new = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECORD_NEWS_H_
