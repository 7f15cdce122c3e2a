#ifndef GMB_CLIENT_CLI_HOLD_STEP_LOG_H_
#define GMB_CLIENT_CLI_HOLD_STEP_LOG_H_

#include <mutex>

#include "absl/strings/string_view.h"
#include "client/cli/context.h"

namespace gmb::cli {

// The output of a long-running command, one line a step, at once: "17:03:21.042
// leased 2.00 GiB ..." or a JSON object with "at", "step" and the facts.
// Thread-safe.
class StepLog {
 public:
  explicit StepLog(Context* context) : context_(context) {}

  void Say(absl::string_view step, absl::string_view text,
           const Json& facts = Json::object());

 private:
  std::mutex mu_;
  Context* const context_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_HOLD_STEP_LOG_H_
