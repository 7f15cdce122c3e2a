// Of libnvidia-ml.so.1 what gmb uses: a GPU's processes, each with its bytes, are
// those in the file that FAKE_NVML_PROCESSES names, those that draw in that of
// FAKE_NVML_GRAPHICS, and its used bytes what FAKE_NVML_USED says.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Memory {
  unsigned long long total, free, used;
};

int ReadProcesses(const char* variable, unsigned* count, ProcessInfo* infos) {
  const char* const file = std::getenv(variable);
  std::ifstream lines(file == nullptr ? "" : file);
  unsigned found = 0;
  for (ProcessInfo info{}; lines >> info.pid >> info.used_bytes; ++found) {
    if (found == *count) return kInsufficientSize;
    infos[found] = info;
  }
  *count = found;
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names
extern "C" {

int nvmlInit_v2() { return kSuccess; }
const char* nvmlErrorString(int) { return "fake error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::strncpy(text, "580.1", bytes);
  return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char*, void** device) {
  *device = nullptr;
  return kSuccess;
}
// The bytes that FAKE_NVML_USED says; without it the driver is asked.
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  const char* const used = std::getenv("FAKE_NVML_USED");
  if (used == nullptr) return kNotSupported;
  *memory = {.total = ~0ULL, .free = 0, .used = std::stoull(used)};
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count,
                                            ProcessInfo* infos) {
  return ReadProcesses("FAKE_NVML_PROCESSES", count, infos);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count,
                                             ProcessInfo* infos) {
  return ReadProcesses("FAKE_NVML_GRAPHICS", count, infos);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
