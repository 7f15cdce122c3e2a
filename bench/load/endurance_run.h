#ifndef GMB_BENCH_LOAD_ENDURANCE_RUN_H_
#define GMB_BENCH_LOAD_ENDURANCE_RUN_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/load/crew.h"
#include "bench/load/load_options.h"
#include "bench/load/load_stage.h"
#include "bench/load/random_times.h"
#include "bench/load/sample.h"
#include "bench/load/tally.h"

namespace gmb::bench {

struct EnduranceOptions {
  LoadOptions load;
  absl::Duration length = absl::Minutes(60);
  // On average; zero: never.
  absl::Duration kill_broker = absl::Seconds(20);
  absl::Duration kill_keeper = absl::Seconds(90);
  absl::Duration sample_every;  // zero: a minute, or a 30th of it all
};

// Clients that work, and SIGKILL to them, their broker and its keeper at random
// instants, for a time. Used by one thread.
class EnduranceRun {
 public:
  EnduranceRun(const EnduranceOptions& options, SharedTally* tally,
               std::stop_token stop);

  // All of it, with a line for each sample. An error: nothing more can be
  // tried; faults() has what was found until then.
  [[nodiscard]] absl::Status Run(const std::string& dir);
  // The table at the end, and whether all was as it should be.
  [[nodiscard]] bool Report() const;

 private:
  absl::Status Play();
  absl::Status DoWhatIsDue();
  absl::Status KillBroker();
  absl::Status Look();
  // All are gone: what is left, and whether both processes are as they were.
  absl::Status LookAtTheEnd();
  void ReadLog();
  void Blame(std::string fault);

  const EnduranceOptions options_;
  SharedTally* const tally_;
  const std::stop_token stop_;
  RandomTimes client_deaths_;
  RandomTimes broker_deaths_;
  RandomTimes keeper_deaths_;
  std::string dir_;
  std::unique_ptr<LoadStage> stage_;
  std::unique_ptr<Crew> crew_;
  absl::Time start_;
  absl::Time next_look_;
  uint64_t log_read_ = 0;  // bytes

  uint64_t halves_ = 0;  // lines of sessions that began or ended in a death
  uint64_t killed_in_adoption_ = 0;
  std::vector<double> broker_ms_;  // until the next one answers
  std::vector<double> keeper_ms_;  // until the next one has everything
  Sample first_;                   // nobody was there yet
  std::vector<Sample> samples_;
  Sample last_;  // nobody is there any more
  bool ended_ = false;
  std::vector<std::string> faults_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_ENDURANCE_RUN_H_
