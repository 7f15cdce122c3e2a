// Where no GPU can be used, `gmb doctor` and `gmb demo` say whether there is one
// all the same.
#include "device/cuda/gpu_hardware.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace gmb::device {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kDisplayController = 0x03;  // the class's highest byte

// A file of a PCI device has one number, such as 0x10de; 0 where it has none.
unsigned NumberIn(const fs::path& file) {
  unsigned number = 0;
  std::ifstream(file) >> std::hex >> number;
  return number;
}

bool IsGpu(const fs::path& device) {
  return NumberIn(device / "vendor") == kNvidia &&
         NumberIn(device / "class") >> 16 == kDisplayController;
}

}  // namespace

bool MachineHasGpu(const std::string& root) {
  std::error_code error;
  if (fs::exists(root + "/dev/nvidiactl", error)) return true;
  fs::directory_iterator device(root + "/sys/bus/pci/devices", error);
  while (!error && device != fs::directory_iterator()) {
    if (IsGpu(device->path())) return true;
    device.increment(error);
  }
  return false;
}

}  // namespace gmb::device
