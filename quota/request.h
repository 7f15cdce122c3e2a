// An Acquire or a Restore as the engine decides about it.
#ifndef GMB_QUOTA_REQUEST_H_
#define GMB_QUOTA_REQUEST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "quota/units.h"
#include "quota/wait_line.h"

namespace gmb::quota {

struct Request {
  // The part that concerns one pool, rounded up.
  struct Part {
    PoolId pool;
    Ask ask;
  };

  RequestId request;
  SessionId session;
  TenantId tenant;
  Instant deadline;
  // The deadline that it came with, however it is put off. Within a guarantee
  // memory that is too young is taken as late as this allows.
  Instant take_by{};
  Nanoseconds linger{0};  // of a Restore: its deadline is put off once by this
  uint32_t handles = 0;   // of an Acquire
  absl::InlinedVector<Part, 1> parts;
  std::vector<LeaseId> leases;      // of a Restore
  std::vector<SessionId> sessions;  // of these leases
  // Of a Restore of one pool: those of its leases that have come back already
  // and are still there, by their ids, and their bytes.
  std::vector<LeaseId> back = {};
  uint64_t back_bytes = 0;
  // One of these was taken again: the rest comes all at once.
  bool comes_whole = false;

  [[nodiscard]] bool IsRestore() const { return !leases.empty(); }
  // Null: it asks for nothing there.
  [[nodiscard]] const Part* PartIn(PoolId pool) const {
    const auto part =
        std::find_if(parts.begin(), parts.end(),
                     [pool](const Part& other) { return other.pool == pool; });
    return part == parts.end() ? nullptr : &*part;
  }
  void AddPoolsTo(std::vector<PoolId>& ids) const {
    for (const Part& part : parts) ids.push_back(part.pool);
  }
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_REQUEST_H_
