// `gmb run`: programs that know more of a new driver than gmb does.
#include "client/preload/newer_program.h"

#include <atomic>

#include "base/cancels_later.h"
#include "client/preload/driver.h"
#include "client/preload/known_functions.h"
#include "client/preload/process_life.h"
#include "client/preload/program_gate.h"
#include "client/preload/settings.h"

namespace gmb::preload {

void NoteLookup(int cuda_version) {
  static std::atomic<bool> noted{false};
  if (cuda_version <= kNewestCudaVersion ||
      noted.load(std::memory_order_acquire) || InForkedChild() ||
      TheSettings().park == Settings::Park::kForce) {
    return;
  }
  const Driver* const driver = Driver::Get();
  int version = 0;
  if (driver == nullptr ||
      driver->cuDriverGetVersion(&version) != CUDA_SUCCESS ||
      version <= kNewestCudaVersion) {
    return;
  }
  const base::CancelsLater cancels_later;
  static constexpr char kWhy[] =
      "it was built for a CUDA that is newer than gmb knows (13.0)";
  // Where the memory does not come back the look-up is made nevertheless: it
  // touches none of it.
  if (!ProgramGate::EndLending(kWhy)) ProgramGate::NeverPark(kWhy);
  noted.store(true, std::memory_order_release);
}

}  // namespace gmb::preload
