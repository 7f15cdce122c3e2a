// `gmb hold`: its output, one line a step.
#include "client/cli/hold/step_log.h"

#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

void StepLog::Say(absl::string_view step, absl::string_view text,
                  const Json& facts) {
  const absl::Time now = absl::Now();
  const std::lock_guard<std::mutex> lock(mu_);
  if (context_->json) {
    Json line;
    line["at"] =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now, absl::UTCTimeZone());
    line["step"] = step;
    line.update(facts);
    context_->out << LineJson(line) << std::endl;
    return;
  }
  context_->out << context_->terminal.Paint(
                       Tone::kFaint, absl::FormatTime("%H:%M:%E3SZ", now,
                                                      absl::UTCTimeZone()))
                << "  "
                << context_->terminal.Paint(Tone::kStrong,
                                            absl::StrFormat("%-10s", step))
                << ' ' << Printable(text) << std::endl;
}

}  // namespace gmb::cli
