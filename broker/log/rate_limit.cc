// The log: how many lines of a kind clients may cause.
#include "broker/log/rate_limit.h"

#include <algorithm>
#include <utility>

namespace gmb::broker {

std::optional<uint64_t> RateLimit::Admit(absl::string_view word,
                                         absl::Time now) {
  Bucket& bucket = buckets_.try_emplace(std::string(word), Bucket{burst_, now})
                       .first->second;
  // A clock set back must not empty or freeze the bucket.
  const double elapsed =
      std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled_at));
  bucket.tokens = std::min(burst_, bucket.tokens + elapsed * per_second_);
  bucket.filled_at = now;
  if (bucket.tokens < 1) {
    ++bucket.held_back;
    return std::nullopt;
  }
  bucket.tokens -= 1;
  return std::exchange(bucket.held_back, 0);
}

}  // namespace gmb::broker
