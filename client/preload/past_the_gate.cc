// `gmb run`: who uses the program's memory and enters no gate.
#include "client/preload/past_the_gate.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"
#include "client/preload/settings.h"

namespace gmb::preload {
namespace {

struct OtherDevice {
  const char* path;  // its beginning
  const char* why;
};
constexpr std::array kOtherDevices = {
    OtherDevice{"/dev/infiniband/uverbs",
                "it has a network card open (/dev/infiniband/uverbs*), which "
                "may reach its memory"},
    OtherDevice{"/dev/nvidia-fs",
                "it has GPUDirect Storage open (/dev/nvidia-fs*), which may "
                "reach its memory"},
    OtherDevice{"/dev/gdrdrv",
                "it has GDRCopy open (/dev/gdrdrv), which maps its memory"}};

// No descriptor is free, say.
constexpr char kUnseen[] = "its open files cannot be looked at";

const char* WhyOf(const char* target) {
  for (const OtherDevice& device : kOtherDevices) {
    if (std::strncmp(target, device.path, std::strlen(device.path)) == 0)
      return device.why;
  }
  return nullptr;
}

}  // namespace

bool IsUnseen(const char* why) { return why == kUnseen; }

const char* WatchedBy() {
  if (TheSettings().tool_in_driver)
    return "a tool is in the driver (CUDA_INJECTION64_PATH)";
  std::array<char, 2048> status{};
  const base::UniqueFd file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  if (read(file.get(), status.data(), status.size() - 1) <= 0) return kUnseen;
  constexpr char kTracer[] = "\nTracerPid:";
  const char* const tracer = std::strstr(status.data(), kTracer);
  if (tracer == nullptr ||
      std::strtol(tracer + std::strlen(kTracer), nullptr, 10) == 0) {
    return nullptr;
  }
  return "a debugger is attached";
}

const char* OpenToOtherDevices(const char* fds) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(fds), closedir);
  if (folder == nullptr) return kUnseen;
  while (const dirent* const entry = readdir(folder.get())) {
    std::array<char, 64> target{};
    if (readlinkat(dirfd(folder.get()), entry->d_name, target.data(),
                   target.size() - 1) <= 0) {
      continue;
    }
    if (const char* const why = WhyOf(target.data())) return why;
  }
  return nullptr;
}

}  // namespace gmb::preload
