#ifndef GMB_BENCH_BROKER_LEASE_ROUNDS_H_
#define GMB_BENCH_BROKER_LEASE_ROUNDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/broker/results.h"
#include "client/cli/admin_client.h"
#include "gmb/client.h"

namespace gmb::bench {

// One broker, and clients of two of its tenants in this process.
struct Bench {
  const cli::AdminClient* admin;
  std::string socket_dir;  // the broker's
  Client* a;
  Client* b;
  std::string uuid;  // of the device
  // Steps of Results to compare with.
  std::string allocate;
  std::string free;
  std::string allocate_and_free;
  Results* results;
};

// The names of the rounds' tenants.
inline constexpr char kTenantA[] = "a";
inline constexpr char kTenantB[] = "b";

// How much the pool could lease now, all in all.
[[nodiscard]] absl::StatusOr<uint64_t> PoolBytes(const Bench& bench);

// Waits until nothing is left of the round before, and all free slabs are
// ready.
[[nodiscard]] absl::Status Settle(const Bench& bench);

// Every round leases `bytes` of ready slabs, which nobody held before, and
// releases them.
[[nodiscard]] absl::Status MeasureFresh(const Bench& bench, uint64_t bytes,
                                        int rounds);
// The same, several one after the other, which are released together: of those
// behind the first. A program that grows does so, and the driver is awake.
[[nodiscard]] absl::Status MeasureInARow(const Bench& bench, uint64_t bytes,
                                         int rounds);
// One alone, with everybody asleep before: threads have to be woken, and caches
// to be filled.
[[nodiscard]] absl::Status MeasureAtRest(const Bench& bench, uint64_t bytes,
                                         int rounds);
// The same bytes again, just after their release.
[[nodiscard]] absl::Status MeasureReuse(const Bench& bench, uint64_t bytes,
                                        int rounds);
// In a full pool, tenant a releases what tenant b waits for.
[[nodiscard]] absl::Status MeasureHandOver(const Bench& bench, uint64_t bytes,
                                           int rounds);
// In a full pool, a process of tenant a is killed that holds what tenant b
// waits for.
[[nodiscard]] absl::Status MeasureKill(const Bench& bench, uint64_t bytes,
                                       int rounds, const std::string& log_path);

// The process that is killed: leases, says "held" and holds.
inline constexpr char kVictimFlag[] = "--victim";
[[nodiscard]] int RunVictim(const std::string& socket_dir,
                            const std::string& uuid, uint64_t bytes);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_LEASE_ROUNDS_H_
