// A library that is linked to a function of the driver that gmb does not know:
// nobody looks it up.
#include "tests/device/fake_cuda/future.h"

extern "C" __attribute__((visibility("default"))) int CallTheDriver() {
  // Which refuses it.
  return cuFutureLaunch(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}
