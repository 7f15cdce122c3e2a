// Leaves time for others when a tenant asks without end.
#include "broker/server/request_pace.h"

#include <algorithm>

namespace gmb::broker {
namespace {

constexpr std::chrono::seconds kMostOwed{1};

std::chrono::nanoseconds TimeOf(double messages, double a_second) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(messages / a_second));
}

}  // namespace

RequestPace::RequestPace(const Options& options)
    : a_message_(TimeOf(1, options.a_second)),
      ahead_(TimeOf(options.at_once - kTurn, options.a_second)) {}

RequestPace::Time& RequestPace::NextOf(quota::TenantId tenant, Time now) {
  if (next_.size() >= forget_at_) ForgetThoseAtRest(now);
  Time& next = next_.try_emplace(tenant, now - ahead_).first->second;
  next = std::max(next, now - ahead_);
  return next;
}

// One of which nothing is known is as if at rest.
void RequestPace::ForgetThoseAtRest(Time now) {
  std::erase_if(
      next_, [&](const auto& entry) { return entry.second <= now - ahead_; });
  forget_at_ = std::max(kFirstForgotten, 2 * next_.size());
}

size_t RequestPace::tenants() const {
  base::MutexLock lock(&mu_);
  return next_.size();
}

void RequestPace::Count(quota::TenantId tenant, int messages, Time now) {
  base::MutexLock lock(&mu_);
  Time& next = NextOf(tenant, now);
  next =
      std::max(next, std::min(next + messages * a_message_, now + kMostOwed));
}

uint32_t RequestPace::CountBytes(quota::TenantId tenant, size_t bytes,
                                 uint32_t* left, Time now) {
  const auto further = static_cast<uint32_t>(bytes / kBytesAMessage);
  const uint32_t of_turn = std::min(further, *left);
  *left -= of_turn;
  if (further > of_turn)
    Count(tenant, static_cast<int>(further - of_turn), now);
  return further;
}

RequestPace::Time RequestPace::NextTurn(quota::TenantId tenant, Time now) {
  base::MutexLock lock(&mu_);
  Time& next = NextOf(tenant, now);
  const Time turn = std::max(next, now);
  next += kTurn * a_message_;
  return turn;
}

void RequestPace::GiveBack(quota::TenantId tenant, uint32_t messages,
                           Time now) {
  if (messages == 0) return;
  base::MutexLock lock(&mu_);
  Time& next = NextOf(tenant, now);
  next = std::max(next - messages * a_message_, now - ahead_);
}

}  // namespace gmb::broker
