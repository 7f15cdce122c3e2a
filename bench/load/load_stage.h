#ifndef GMB_BENCH_LOAD_LOAD_STAGE_H_
#define GMB_BENCH_LOAD_LOAD_STAGE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/crew.h"
#include "bench/load/load_options.h"
#include "bench/load/tally.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/keeper_process.h"

namespace gmb::bench {

// A broker of the host device with its keeper, both of which may be killed, one
// at a time. Used by one thread.
class LoadStage {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LoadStage>> Set(
      const LoadOptions& options, const std::string& dir);

  [[nodiscard]] const cli::BrokerProcess& broker() const { return *broker_; }
  [[nodiscard]] const cli::KeeperProcess& keeper() const { return *keeper_; }
  [[nodiscard]] absl::StatusOr<Crew> StartCrew(SharedTally* tally) const;

  // SIGKILL to a process of the crew, counted as it took until the broker has
  // none of its sessions; another one takes its place.
  [[nodiscard]] absl::Status KillClient(size_t number, Crew* crew,
                                        Tally* tally) const;
  // SIGKILL. The next one is started once it is dead, and this returns when
  // that one answers. With `again_after` that one is killed so long after its
  // start, whatever it does, and a third one is started.
  [[nodiscard]] absl::Status KillBroker(
      std::optional<absl::Duration> again_after);
  // SIGKILL, and the next one at once. Returns when the broker has said that
  // everything is with that one: from then on it may die, too.
  [[nodiscard]] absl::Status KillKeeper();

  // Nobody has anything: that of the books which is not back in some time.
  [[nodiscard]] std::string WhatIsLeft() const;
  // Both end in order.
  [[nodiscard]] absl::Status Stop();

 private:
  LoadStage(const LoadOptions& options, std::string dir)
      : options_(options), dir_(std::move(dir)) {}
  [[nodiscard]] bool HasHostPool() const;

  const LoadOptions options_;
  const std::string dir_;
  std::optional<cli::KeeperProcess> keeper_;
  std::unique_ptr<cli::BrokerProcess> broker_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_LOAD_STAGE_H_
