// A library that is linked to the driver, and that programs open with a scope of
// its own: its calls pass by whatever is in front of the driver.
#include "tests/device/driver_of_programs.h"

extern "C" __attribute__((visibility("default"))) int CallTheDriver() {
  return cuMemcpyHtoD(0, nullptr, 0);
}
