// An honest tenant as a process:
//
//   honest_tenant SOCKET_DIR TAG [UID]
//
// Leases and releases until SIGTERM, with a pause in between, and says "round N"
// after each round. Ends with 0 and "all well" if everything was served and
// nothing was lost, and with 4 and what went wrong otherwise.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/attack/honest_tenant.h"

namespace {

constexpr int kWrong = 4;
// Without it a round follows at once, and the tenant takes a whole processor.
constexpr absl::Duration kPause = absl::Milliseconds(5);
volatile sig_atomic_t stopped = 0;

int Say(const absl::Status& wrong) {
  std::fprintf(stderr, "honest_tenant: %s\n", wrong.ToString().c_str());
  return kWrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const unsigned uid = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 0;
  if (uid > 0 && (::setgid(uid) != 0 || ::setuid(uid) != 0)) return 3;
  ::signal(SIGTERM, [](int) { stopped = 1; });
  const auto tenant = gmb::attack::HonestTenant::Open(
      argv[1], static_cast<unsigned char>(std::atoi(argv[2])));
  if (!tenant.ok()) return Say(tenant.status());
  for (uint64_t round = 1; stopped == 0; ++round) {
    const absl::Status served = (*tenant)->Round();
    if (!served.ok()) return Say(served);
    std::printf("round %lu\n", round);
    std::fflush(stdout);
    absl::SleepFor(kPause);
  }
  const absl::Status held = (*tenant)->CheckHeld();
  if (!held.ok()) return Say(held);
  std::printf("all well\n");
  return 0;
}
