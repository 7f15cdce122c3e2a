#ifndef GMB_BROKER_DOORS_TOKEN_BUCKET_H_
#define GMB_BROKER_DOORS_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>

namespace gmb::broker {

// How often something may happen: `burst` times at once, and `per_second` over
// time. A value; time is the caller's and never goes back.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  constexpr TokenBucket(double burst, double per_second)
      : burst_(burst), per_second_(per_second), tokens_(burst) {}

  // False: it happens too often.
  [[nodiscard]] bool Take(Time now) {
    tokens_ = TokensAt(now);
    filled_at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Whether it may happen now, so many times.
  [[nodiscard]] bool Has(Time now, double times = 1) const {
    return TokensAt(now) >= times;
  }
  // It counts as if it had happened so many times more; no more than a burst is
  // owed.
  void Spend(double times) { tokens_ = std::max(-burst_, tokens_ - times); }
  // How often it has happened of late, beyond what time has made good.
  [[nodiscard]] double SpentOfBurst(Time now) const {
    return burst_ - TokensAt(now);
  }
  // So many times more than time gives.
  void Earn(double times) { tokens_ = std::min(burst_, tokens_ + times); }

 private:
  [[nodiscard]] double TokensAt(Time now) const {
    if (filled_at_ == Time()) return tokens_;
    const std::chrono::duration<double> since = now - filled_at_;
    return std::min(burst_, tokens_ + since.count() * per_second_);
  }

  double burst_;
  double per_second_;
  double tokens_;
  Time filled_at_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_TOKEN_BUCKET_H_
