#include "tests/preload/program_ipc.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace {

// Where the handle's secret is.
constexpr std::streamoff kSecret = 20;

CUipcMemHandle ReadHandle(const std::string& file) {
  CUipcMemHandle handle{};
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(&handle), sizeof(handle));
  return handle;
}

// Whole or not at all.
void WriteHandle(const CUipcMemHandle& handle, const std::string& file) {
  const std::string part = file + ".part";
  std::ofstream(part, std::ios::binary)
      .write(reinterpret_cast<const char*>(&handle), sizeof(handle));
  std::rename(part.c_str(), file.c_str());
}

}  // namespace

CUresult IpcSteps::GetHandle(CUdeviceptr address,
                             const std::string& file) const {
  CUipcMemHandle handle{};
  const CUresult result = api_.cuIpcGetMemHandle_(&handle, address);
  if (result == CUDA_SUCCESS) WriteHandle(handle, file);
  return result;
}

void IpcSteps::SayExtent(const std::string& name, CUdeviceptr at,
                         size_t offset) const {
  CUdeviceptr start = 0;
  size_t bytes = 0;
  unsigned capable = 9;
  std::array<CUpointer_attribute, 2> attributes = {
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  std::array<void*, 2> data = {&bytes, &capable};
  const CUresult one = api_.cuPointerGetAttribute_(
      &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + offset);
  const CUresult many = api_.cuPointerGetAttributes_(2, attributes.data(),
                                                     data.data(), at + offset);
  std::printf("extent %s %d %d %lld %zu %u\n", name.c_str(), one, many,
              static_cast<long long>(start - at), bytes, capable);
}

bool IpcSteps::Do(const std::vector<std::string>& words) {
  const std::string& what = words[0];
  const std::string& name = words[1];
  CUresult result = CUDA_SUCCESS;
  if (what == "ipc-handle") {
    result = GetHandle(memory_[name], words[2]);
  } else if (what == "ipc-open") {
    result = api_.cuIpcOpenMemHandle_(&memory_[name], ReadHandle(words[2]),
                                      CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  } else if (what == "ipc-close") {
    result = api_.cuIpcCloseMemHandle_(memory_[name]);
  } else if (what == "ipc-spoil") {
    CUipcMemHandle handle = ReadHandle(name);
    handle.reserved[kSecret] = static_cast<char>(handle.reserved[kSecret] ^ 1);
    WriteHandle(handle, name);
  } else if (what == "extent") {
    SayExtent(name, memory_[name],
              std::strtoull(words[2].c_str(), nullptr, 10));
    return true;
  } else {
    return false;
  }
  std::printf("%s %s %d\n", what.c_str(), name.c_str(), result);
  return true;
}
