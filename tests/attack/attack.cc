// When an attack ends, and what it tells about itself.
#include "tests/attack/attack.h"

#include <signal.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gmb::attack {
namespace {

volatile sig_atomic_t stopped = 0;

void OnStop(int /*signal*/) { stopped = 1; }

}  // namespace

Attack::Attack(const AttackOptions& options) : options_(options) {
  struct sigaction stop {};
  stop.sa_handler = OnStop;  // without SA_RESTART: it ends what waits
  ::sigaction(SIGTERM, &stop, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool Attack::GoesOn() {
  const absl::Time now = absl::Now();
  if (start_ == absl::InfinitePast()) {
    start_ = now;
    std::printf("attacking\n");
    std::fflush(stdout);
  }
  const absl::Duration gone = now - start_;
  const int64_t second = absl::ToInt64Seconds(gone);
  if (second > seconds_reported_) {
    seconds_reported_ = second;
    Report(absl::StrCat("second ", second));
  }
  const bool goes_on = stopped == 0 && gone < absl::Seconds(options_.seconds);
  if (!goes_on) Report("over");
  return goes_on;
}

void Attack::Report(const std::string& heading) const {
  std::string line = absl::StrCat(heading, ":");
  for (const auto& [what, count] : counts_)
    absl::StrAppend(&line, " ", what, "=", count);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace gmb::attack
