// Which machines have a GPU, used or not: as files of the kernel say it.
#include "device/cuda/gpu_hardware.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/broker/temp_directory.h"

namespace gmb::device {
namespace {

class GpuHardwareTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void AddPciDevice(const std::string& address, const std::string& vendor,
                    const std::string& kind) {
    Write("/sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    Write("/sys/bus/pci/devices/" + address + "/class", kind + "\n");
  }
  std::string root() const { return directory_.path(); }

 private:
  broker::TempDirectory directory_;
};

TEST_F(GpuHardwareTest, AMachineWithoutFilesHasNone) {
  EXPECT_FALSE(MachineHasGpu(root()));
}

TEST_F(GpuHardwareTest, ADeviceNodeIsOne) {
  Write("/dev/nvidiactl", "");
  EXPECT_TRUE(MachineHasGpu(root()));
}

TEST_F(GpuHardwareTest, OfThePciBusNvidiasDisplayControllersCount) {
  AddPciDevice("0000:00:01.0", "0x8086", "0x030000");  // another's
  AddPciDevice("0000:01:00.1", "0x10de", "0x040300");  // a GPU's sound
  Write("/sys/bus/pci/devices/0000:02:00.0/vendor", "");
  EXPECT_FALSE(MachineHasGpu(root()));
  AddPciDevice("0000:03:00.0", "0x10de", "0x030200");
  EXPECT_TRUE(MachineHasGpu(root()));
}

}  // namespace
}  // namespace gmb::device
