#ifndef GMB_BROKER_STORE_DECLARED_NOW_H_
#define GMB_BROKER_STORE_DECLARED_NOW_H_

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "broker/declared/declared.h"

namespace gmb::broker {

// All that is declared and in force, whole at each look. Thread-safe: a look
// never waits for the disk.
class DeclaredNow {
 public:
  explicit DeclaredNow(Declared declared)
      : declared_(std::make_shared<const Declared>(std::move(declared))) {}

  // It is not changed.
  [[nodiscard]] std::shared_ptr<const Declared> Get() const
      ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    return declared_;
  }
  void Set(Declared declared) ABSL_LOCKS_EXCLUDED(mu_) {
    auto next = std::make_shared<const Declared>(std::move(declared));
    base::MutexLock lock(&mu_);
    declared_.swap(next);
  }

 private:
  mutable base::Mutex mu_;  // held for no longer than a pointer takes
  std::shared_ptr<const Declared> declared_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_DECLARED_NOW_H_
