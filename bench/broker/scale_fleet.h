#ifndef GMB_BENCH_BROKER_SCALE_FLEET_H_
#define GMB_BENCH_BROKER_SCALE_FLEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/line_channel.h"

namespace gmb::bench {

inline constexpr uint64_t kScaleLeaseBytes = uint64_t{2} << 20;

// The name of the tenant of that number, from 0.
[[nodiscard]] std::string ScaleTenant(uint32_t number);

struct FleetPlan {
  std::string socket_dir;  // the broker's
  std::string log_path;
  uint32_t tenants = 0;
  uint32_t sessions = 0;
  uint32_t leases = 0;
  uint32_t processes = 0;
  // Of a second device; so many sessions hold one more lease there.
  std::string second_device;
  uint32_t second_leases = 0;
};

// Processes that open sessions and hold leases until they are killed.
class Fleet {
 public:
  // Returns when all is held.
  [[nodiscard]] static absl::StatusOr<Fleet> Start(const FleetPlan& plan);
  // SIGKILL, all at once; they are reaped with the fleet.
  void Kill() const;

 private:
  struct Ship {
    cli::ChildProcess process;
    cli::LineChannel lines;
  };
  [[nodiscard]] static absl::StatusOr<Ship> Launch(const FleetPlan& plan,
                                                   uint32_t number);

  std::vector<Ship> ships_;
};

// One of the processes; `argv` is what Launch has given it.
inline constexpr char kFleetFlag[] = "--fleet";
[[nodiscard]] int RunShip(int argc, char** argv);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_SCALE_FLEET_H_
