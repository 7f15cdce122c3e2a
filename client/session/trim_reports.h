#ifndef GMB_CLIENT_SESSION_TRIM_REPORTS_H_
#define GMB_CLIENT_SESSION_TRIM_REPORTS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "client/session/calls.h"
#include "client/session/trim_hook.h"
#include "gmb/v1/handle.pb.h"

namespace gmb::internal {

// A session's reports to its broker about trims: how much it could give back,
// and the answer to each Trim. Thread-safe.
class TrimReports {
 public:
  // `welcome`, which names the devices, and `calls` outlive it.
  TrimReports(const v1::Welcome* welcome, std::shared_ptr<TrimHook> hook,
              Calls* calls);

  // The hook that the broker's Trims call.
  [[nodiscard]] TrimHook& hook() { return *hook_; }
  // Does not wait. The device's sum counts: of the application's, which has no
  // heap, and its heaps'.
  [[nodiscard]] absl::Status SetTrimmable(const std::string& device,
                                          uint64_t bytes,
                                          const void* heap = nullptr);
  // Says what the hook has to say. By the session's thread.
  void Answer();

 private:
  const v1::Welcome& welcome_;
  const std::shared_ptr<TrimHook> hook_;
  Calls& calls_;

  // Held while a report is queued, so that the newest is the last.
  base::Mutex mu_;
  // By device, and there by heap.
  std::map<std::string, std::map<const void*, uint64_t>> trimmable_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_TRIM_REPORTS_H_
