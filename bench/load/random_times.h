#ifndef GMB_BENCH_LOAD_RANDOM_TIMES_H_
#define GMB_BENCH_LOAD_RANDOM_TIMES_H_

#include <cmath>
#include <random>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gmb::bench {

// Instants at random, `mean` apart on average; none where that is zero.
class RandomTimes {
 public:
  RandomTimes(absl::Duration mean, uint64_t seed) : mean_(mean), random_(seed) {
    Advance();
  }

  [[nodiscard]] bool Due() const { return absl::Now() >= next_; }
  void Advance() {
    const double share = std::generate_canonical<double, 53>(random_);
    next_ = mean_ > absl::ZeroDuration()
                ? absl::Now() - mean_ * std::log(1 - share)
                : absl::InfiniteFuture();
  }
  [[nodiscard]] uint64_t Roll(uint64_t sides) { return random_() % sides; }

 private:
  const absl::Duration mean_;
  std::mt19937_64 random_;
  absl::Time next_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_RANDOM_TIMES_H_
