#ifndef GMB_BENCH_BROKER_RESULTS_H_
#define GMB_BENCH_BROKER_RESULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace gmb::bench {

// All times of one step at one size. Not thread-safe.
class Results {
 public:
  // `beside` names the step of the same size to compare with; empty: none.
  void Add(uint64_t bytes, const std::string& step, absl::Duration time,
           const std::string& beside = "");

  // A table for people: medians, p10, p90 and ratios.
  void Print() const;
  // The rows of a JSON list.
  [[nodiscard]] std::string Json() const;

 private:
  struct Series {
    uint64_t bytes;
    std::string step;
    std::string beside;
    std::vector<double> microseconds;
  };

  [[nodiscard]] const Series* Find(uint64_t bytes,
                                   const std::string& step) const;
  // Median by median; 0 without a peer.
  [[nodiscard]] double Ratio(const Series& series) const;

  std::vector<Series> all_;  // in the order of their first appearance
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_RESULTS_H_
