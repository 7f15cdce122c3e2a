#ifndef GMB_DEVICE_HANDLE_H_
#define GMB_DEVICE_HANDLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "base/unique_fd.h"

namespace gmb::device {

enum class DeviceKind { kVmm, kIpc, kHost };

// The 64 opaque bytes of a legacy cudaIpcMemHandle_t.
using IpcHandle = std::array<std::byte, 64>;

// The handle that travels to a client so that it can map a slab: a file
// descriptor for vmm and host (by SCM_RIGHTS), 64 bytes for ipc (in the frame
// itself). An fd here owns its own open file description where the kind allows
// it.
using ShareableHandle = std::variant<base::UniqueFd, IpcHandle>;

// Names one device: what a broker says to a client and an operator types.
struct DeviceInfo {
  DeviceKind kind;
  std::string uuid;  // "GPU-8f5c..." as NVIDIA prints it; "host-0" for host
  std::string name;  // "NVIDIA H200"; "host memory"
  uint64_t total_bytes = 0;
  uint64_t granularity_bytes = 0;  // every slab is a multiple of it
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HANDLE_H_
