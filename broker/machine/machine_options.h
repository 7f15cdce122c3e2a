#ifndef GMB_BROKER_MACHINE_MACHINE_OPTIONS_H_
#define GMB_BROKER_MACHINE_MACHINE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "quota/backing.h"
#include "quota/planner.h"

namespace gmb::broker {

struct MachineOptions {
  uint64_t max_handles = 32768;  // slabs alive in granted leases, all tenants
  uint32_t max_sessions = 1024;
  uint32_t max_requests_per_session = 1024;  // unanswered at once
  // Of an ended session's leases, so many come back in one turn.
  uint32_t most_ends_at_once = 256;
  // Why max_handles or max_sessions are below what was asked for; empty: they
  // are not.
  std::string few_files;
  std::string default_tenant;  // of peers on the shared socket; empty: none
  // A successor takes over what is recorded; else nothing is.
  bool recorded = false;
  // Machine::Adopt follows: until then what the last broker has left is on the
  // devices, and not in the books.
  bool takes_over = false;
  // Of leases that come back: how much is created and not yet filled. A GPU is
  // filled with so much in some 7 ms, in which the next slabs can be made, also
  // if a ready one has to be destroyed and cleared for them (3 ms a GiB).
  uint64_t fill_ahead_bytes = uint64_t{384} << 20;
  // In which a client maps what it was granted (H100: 64 MiB in 0.1 to 0.3 ms,
  // 8 GiB in 1 ms).
  quota::Nanoseconds mapping_time = std::chrono::milliseconds(2);
  quota::PlannerOptions planner;
  quota::BackingOptions backing;
  std::string
      tenants_dir;  // where tenants' socket directories are; for reports
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_MACHINE_OPTIONS_H_
