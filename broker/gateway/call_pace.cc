// The line in which a tenant's connections wait for its pace.
#include "broker/gateway/call_pace.h"

#include <algorithm>

namespace gmb::broker {

bool CallPace::AllowsOne(Connection connection, Time now) const {
  base::MutexLock lock(&mu_);
  return bucket_.Has(now, static_cast<double>(line_.size() + 1)) ||
         PlaceOf(connection, now).has_value();
}

std::optional<size_t> CallPace::PlaceOf(Connection connection, Time now) const {
  for (size_t i = 0; i < line_.size(); ++i) {
    if (!bucket_.Has(now, static_cast<double>(i + 1))) break;
    if (line_[i].connection == connection) return i;
  }
  return std::nullopt;
}

void CallPace::Count(double calls, Time now) {
  base::MutexLock lock(&mu_);
  if (bucket_.Take(now)) calls -= 1;
  bucket_.Spend(calls);
}

void CallPace::Wait(Connection connection) {
  base::MutexLock lock(&mu_);
  line_.push_back({connection});
}

bool CallPace::Offer(Connection connection, Time now) {
  base::MutexLock lock(&mu_);
  const std::optional<size_t> at = PlaceOf(connection, now);
  if (!at.has_value()) return false;
  Place& place = line_[*at];
  if (!place.offered_since.has_value()) place.offered_since = now;
  if (now - *place.offered_since < kTurn) return true;
  line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(*at));
  line_.push_back({connection});
  return false;
}

void CallPace::Leave(Connection connection) {
  base::MutexLock lock(&mu_);
  const auto place = std::find_if(
      line_.begin(), line_.end(),
      [&](const Place& one) { return one.connection == connection; });
  if (place != line_.end()) line_.erase(place);
}

bool CallPace::AtRest(Time now) const {
  base::MutexLock lock(&mu_);
  return line_.empty() && bucket_.SpentOfBurst(now) <= 0;
}

}  // namespace gmb::broker
