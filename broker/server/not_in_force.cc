// Stored values that are not in force: kept for operators until they are settled.
#include "broker/server/not_in_force.h"

#include <utility>

namespace gmb::broker {

NotInForce::NotInForce(DroppedValues values) : values_(std::move(values)) {
  Show();
}

void NotInForce::Drop(const std::string& subject, std::string why) {
  values_[subject] = std::move(why);
  Show();
}

void NotInForce::Settle(const std::string& subject) {
  if (values_.erase(subject) > 0) Show();
}

void NotInForce::AddTo(v1::GetStatusResponse* response) const {
  base::MutexLock lock(&mu_);
  for (const std::string& why : shown_) response->add_not_in_force(why);
}

void NotInForce::Show() {
  constexpr size_t kMost = 100;
  size_ = values_.size();
  std::vector<std::string> shown;
  for (const auto& [subject, why] : values_) {
    if (shown.size() < kMost) shown.push_back(why);
  }
  base::MutexLock lock(&mu_);
  shown_ = std::move(shown);
}

}  // namespace gmb::broker
