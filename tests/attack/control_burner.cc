// Takes processor time as an attacker does, half of it in the kernel, and never
// touches a broker. An attacker that fills a lease takes it in bursts of some
// milliseconds, for which others wait longer: so does its control.
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/unique_fd.h"
#include "tests/attack/attack.h"
#include "tests/attack/own_lease.h"

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

// False where there is no memory for it.
bool FillOwnMemory(uint64_t bytes) {
  base::UniqueFd memory(::memfd_create("burnt", MFD_CLOEXEC));
  if (memory.get() < 0 ||
      ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    return false;
  }
  const Slab slab(std::move(memory), bytes);
  if (slab.at == MAP_FAILED || HasBytesOfOthers(slab)) return false;
  FillWithOwn(slab);
  return true;
}

}  // namespace

absl::Status ControlBurner(Attack& attack) {
  const absl::Time start = absl::Now();
  const uint64_t fill = attack.options().fill;
  while (attack.GoesOn()) {
    const absl::Duration allowed =
        (absl::Now() - start) * attack.options().duty;
    if (ProcessorTime() >= allowed) {
      ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kSlice)));
    } else if (fill == 0) {
      Burn();
    } else if (!FillOwnMemory(fill)) {
      return absl::ResourceExhaustedError("no memory to fill");
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
