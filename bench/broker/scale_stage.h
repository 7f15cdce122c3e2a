#ifndef GMB_BENCH_BROKER_SCALE_STAGE_H_
#define GMB_BENCH_BROKER_SCALE_STAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/broker/scale_fleet.h"
#include "bench/broker/scale_options.h"
#include "bench/broker/waiter.h"
#include "client/cli/demo/broker_process.h"
#include "gmb/client.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::bench {

// A large broker, its fleet, a tenant that is measured, and the load.
class ScaleStage {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ScaleStage>> Set(
      const ScaleOptions& options, const std::string& dir);

  // Until Unload: limits are lowered, the second pool drains and shrinks, and a
  // request waits. Both may be slow where the broker is.
  [[nodiscard]] absl::Status Load();
  [[nodiscard]] absl::Status Unload();

  void KillFleet() const { fleet_->Kill(); }
  // Nobody waits any more: whoever does would get what comes back.
  void EndWaiting() { waiter_.reset(); }
  // The fleet's bytes that are not back.
  [[nodiscard]] absl::StatusOr<uint64_t> BytesOut() const;

  // The tenant within its guarantee.
  [[nodiscard]] Client& probe() const { return *probe_; }
  [[nodiscard]] const cli::BrokerProcess& broker() const { return *broker_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  // As the broker counted when the fleet was there.
  [[nodiscard]] const v1::GetStatusResponse& at_first() const {
    return at_first_;
  }

 private:
  explicit ScaleStage(const ScaleOptions& options) : options_(options) {}

  [[nodiscard]] absl::Status StartBroker(const std::string& dir);
  [[nodiscard]] absl::Status StartFleet(const std::string& dir);
  [[nodiscard]] absl::StatusOr<std::unique_ptr<Client>> Connect(
      const char* tenant) const;
  [[nodiscard]] absl::Status SetLimits(const v1::Amount& limit) const;
  [[nodiscard]] absl::Status PressSecondPool(bool on) const;

  const ScaleOptions options_;
  std::unique_ptr<cli::BrokerProcess> broker_;
  std::string device_;
  std::string second_device_;  // empty: there is none
  uint64_t second_bytes_ = 0;
  std::optional<Fleet> fleet_;
  std::unique_ptr<Client> probe_;
  std::unique_ptr<Client> greedy_;
  std::unique_ptr<Waiter> waiter_;  // after its client
  v1::GetStatusResponse at_first_;
};

// The tenant that is measured, and the one that waits.
inline constexpr char kProbe[] = "probe";
inline constexpr char kGreedy[] = "greedy";

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_SCALE_STAGE_H_
