#ifndef GMB_BROKER_SERVER_NOT_IN_FORCE_H_
#define GMB_BROKER_SERVER_NOT_IN_FORCE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "broker/server/state_findings.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// The stored values that are not in force, until each is set anew. Changed on
// the operators' thread, counted and said on any.
class NotInForce {
 public:
  // `values`: those that the start left out.
  explicit NotInForce(DroppedValues values);

  // The operators' thread's.
  [[nodiscard]] const DroppedValues& values() const { return values_; }
  // `why`: a sentence.
  void Drop(const std::string& subject, std::string why);
  // That value is set anew, if it was left out.
  void Settle(const std::string& subject);

  // Any thread.
  [[nodiscard]] uint64_t size() const { return size_; }
  // The lines that `gmb status` says of them.
  void AddTo(v1::GetStatusResponse* response) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Show() ABSL_LOCKS_EXCLUDED(mu_);

  DroppedValues values_;
  std::atomic<uint64_t> size_{0};
  mutable base::Mutex mu_;
  std::vector<std::string> shown_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_NOT_IN_FORCE_H_
