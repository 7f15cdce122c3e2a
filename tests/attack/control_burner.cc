// Takes processor time as an attacker does, half of it in the kernel, and never
// touches a broker.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "tests/attack/attack.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(2);

absl::Duration ProcessorTime() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

void Burn() {
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 20'000; ++i) sum = sum + i * i;
  for (int i = 0; i < 50; ++i) (void)::getppid();
}

}  // namespace

absl::Status ControlBurner(Attack& attack) {
  const absl::Time start = absl::Now();
  while (attack.GoesOn()) {
    const absl::Duration allowed =
        (absl::Now() - start) * attack.options().duty;
    if (ProcessorTime() < allowed) {
      Burn();
    } else {
      ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kSlice)));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
