#ifndef GMB_CLIENT_CLI_TOP_ROWS_H_
#define GMB_CLIENT_CLI_TOP_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/top/look.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli::top {

// The order of rows: most first, names from a to z.
enum class Sort { kBytes, kChange, kEvicted, kWaiting, kIdle, kName };
inline constexpr Sort kSorts[] = {Sort::kBytes,   Sort::kChange, Sort::kEvicted,
                                  Sort::kWaiting, Sort::kIdle,   Sort::kName};
// "bytes", as --sort has it.
[[nodiscard]] std::string NameOf(Sort sort);
[[nodiscard]] std::optional<Sort> SortNamed(const std::string& name);

struct Choice {
  Sort sort = Sort::kBytes;
  bool reversed = false;
  // Leaves out processes that are parked or closed and wait for nothing, and
  // tenants that hold nothing and wait for nothing.
  bool hide_idle = false;
  std::string tenant_part;  // only tenants with it in their names; empty: all
  std::string device;       // UUID; empty: all, added up
};

// Bytes a second; absent while there is but one look.
using Rate = std::optional<double>;

struct TenantRow {
  std::string name;
  v1::QuotaView view;  // added up over the devices
  uint64_t resident_bytes = 0;
  uint64_t borrowed_bytes = 0;
  uint64_t hard_bytes = 0;
  uint64_t waiting = 0;
  uint64_t waiting_bytes = 0;
  uint64_t sessions = 0;
  uint64_t active = 0;  // of its processes
  uint64_t parked = 0;  // parked or closed
  absl::Duration idle;  // all are parked: the least of their times
  Rate change;          // of the bytes on the device
  Rate evicted, restored;
};

struct SessionRow {
  v1::SessionInfo info;
  uint64_t resident_bytes = 0;
  Rate change;
};

struct Rows {
  std::vector<TenantRow> tenants;
  std::vector<SessionRow> sessions;
  // Of all tenants and processes, those left out too.
  uint64_t gates_off = 0, active = 0, parked = 0, pausing = 0, closed = 0;
};

[[nodiscard]] Rows MakeRows(const Sight& sight, const Choice& choice);

// Bytes that were moved on the device a second between the two looks.
[[nodiscard]] Rate EvictedOn(const Sight& sight, const std::string& device);
[[nodiscard]] Rate RestoredOn(const Sight& sight, const std::string& device);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_ROWS_H_
