#ifndef GMB_BROKER_LOG_RATE_LIMIT_H_
#define GMB_BROKER_LOG_RATE_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gmb::broker {

// A bucket of tokens for each word. Not thread-safe. Words are few and ours, so
// that the table stays small.
class RateLimit {
 public:
  RateLimit(double burst, double per_second)
      : burst_(burst), per_second_(per_second) {}

  // Whether one more may pass now; if so, how many of this word were held back
  // since the last that passed.
  [[nodiscard]] std::optional<uint64_t> Admit(absl::string_view word,
                                              absl::Time now);

 private:
  struct Bucket {
    double tokens;
    absl::Time filled_at;
    uint64_t held_back = 0;
  };

  const double burst_;
  const double per_second_;
  absl::flat_hash_map<std::string, Bucket> buckets_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_LOG_RATE_LIMIT_H_
