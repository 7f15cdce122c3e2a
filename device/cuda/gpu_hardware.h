#ifndef GMB_DEVICE_CUDA_GPU_HARDWARE_H_
#define GMB_DEVICE_CUDA_GPU_HARDWARE_H_

#include <string>

namespace gmb::device {

// Whether the kernel shows an NVIDIA GPU, usable or not: its driver's device
// node, or a display controller of NVIDIA's on the PCI bus, which a container
// sees too. Asks no driver. `root` stands before /dev and /sys: tests give a
// folder.
[[nodiscard]] bool MachineHasGpu(const std::string& root = "");

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_GPU_HARDWARE_H_
