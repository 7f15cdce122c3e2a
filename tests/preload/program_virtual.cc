#include "tests/preload/program_virtual.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/device/fake_cuda/future.h"

namespace {

constexpr auto kFabricSupported = static_cast<CUdevice_attribute>(128);

unsigned long long Number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

void Say(const std::string& what, const std::string& name, CUresult result) {
  std::printf("%s %s %d\n", what.c_str(), name.c_str(), result);
}

// A function that the fake driver alone has.
void* OfDriver(const char* name) {
  return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

// As who was built for CUDA 14.0 finds it.
template <typename Function>
Function* NewerForm(const char* name) {
  const auto get = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(
      OfDriver("cuGetProcAddress_v2"));
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  get(name, &found, 14000, 0, &status);
  return reinterpret_cast<Function*>(found);
}

// By a call that comes out of NCCL's library.
CUresult CreateInNccl(decltype(&::cuMemCreate) create,
                      CUmemGenericAllocationHandle* handle, size_t bytes,
                      const CUmemAllocationProp* properties) {
  const auto call = reinterpret_cast<decltype(&CreateInNccl)>(
      dlsym(dlopen("libnccl.so.2", RTLD_NOW), "fakeNcclCreate"));
  return call(create, handle, bytes, properties);
}

}  // namespace

bool VirtualSteps::Do(const std::vector<std::string>& words) {
  return Handles(words) || Addresses(words);
}

CUresult VirtualSteps::Create(const std::vector<std::string>& words) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes =
      static_cast<CUmemAllocationHandleType>(Number(words[3]));
  properties.allocFlags.gpuDirectRDMACapable = words[4] == "rdma" ? 1 : 0;
  CUmemGenericAllocationHandle& handle = handles_[words[1]];
  const size_t bytes = Number(words[2]);
  return words[0] == "create"
             ? api_.cuMemCreate_(&handle, bytes, &properties, 0)
             : CreateInNccl(api_.cuMemCreate_, &handle, bytes, &properties);
}

// The file names the descriptor, which another process opens.
CUresult VirtualSteps::Export(CUmemGenericAllocationHandle handle,
                              const std::string& file) const {
  int fd = -1;
  const CUresult result = api_.cuMemExportToShareableHandle_(
      &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result == CUDA_SUCCESS && !file.empty()) {
    const std::string part = file + ".part";
    std::ofstream(part) << "/proc/" << getpid() << "/fd/" << fd;
    std::rename(part.c_str(), file.c_str());
  }
  return result;
}

CUresult VirtualSteps::Import(CUmemGenericAllocationHandle* handle,
                              const std::string& file) const {
  std::string path;
  std::getline(std::ifstream(file), path);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const CUresult result = api_.cuMemImportFromShareableHandle_(
      handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(fd);
  return result;
}

bool VirtualSteps::Handles(const std::vector<std::string>& words) {
  const std::string& what = words[0];
  const std::string& name = words[1];
  if (what == "create" || what == "nccl-create") {
    Say(what, name, Create(words));
  } else if (what == "release") {
    Say(what, name, api_.cuMemRelease_(handles_[name]));
  } else if (what == "retain") {
    Say(what, name,
        api_.cuMemRetainAllocationHandle_(
            &handles_[name], reinterpret_cast<void*>(memory_[words[2]])));
  } else if (what == "same-handle") {
    std::printf("same-handle %d\n",
                handles_[name] == handles_[words[2]] ? 1 : 0);
  } else if (what == "properties") {
    CUmemAllocationProp properties{};
    const CUresult result = api_.cuMemGetAllocationPropertiesFromHandle_(
        &properties, handles_[name]);
    std::printf("properties %s %d %d %d\n", name.c_str(), result,
                static_cast<int>(properties.requestedHandleTypes),
                properties.allocFlags.gpuDirectRDMACapable);
  } else if (what == "export") {
    Say(what, name, Export(handles_[name], words[2]));
  } else if (what == "import") {
    Say(what, name, Import(&handles_[name], words[2]));
  } else if (what == "multicast") {
    using Bind =
        CUresult (*)(unsigned long long, size_t, CUmemGenericAllocationHandle,
                     size_t, size_t, unsigned long long);
    const auto bind = reinterpret_cast<Bind>(OfDriver("cuMulticastBindMem"));
    Say(what, name, bind(1, 0, handles_[name], 0, Number(words[2]), 0));
  } else if (what == "future-multicast") {
    Say(what, name,
        NewerForm<decltype(::cuMulticastBindMem_v9)>("cuMulticastBindMem")(
            1, 0, 0, handles_[name], 0, 1, 0));
  } else if (what == "future-release") {
    Say(what, name,
        NewerForm<decltype(::cuMemRelease_v9)>("cuMemRelease")(handles_[name]));
  } else if (what == "fabric") {
    int value = -1;
    api_.cuDeviceGetAttribute_(&value, kFabricSupported, 0);
    std::printf("fabric %d\n", value);
  } else {
    return false;
  }
  return true;
}

CUresult VirtualSteps::SetAccess(const std::vector<std::string>& words) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = words[3] == "read" ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                    : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return api_.cuMemSetAccess_(memory_[words[1]], Number(words[2]), &access, 1);
}

bool VirtualSteps::Addresses(const std::vector<std::string>& words) {
  const std::string& what = words[0];
  const std::string& name = words[1];
  if (what == "reserve") {
    Say(what, name,
        api_.cuMemAddressReserve_(&memory_[name], Number(words[2]), 0, 0, 0));
  } else if (what == "unreserve") {
    Say(what, name, api_.cuMemAddressFree_(memory_[name], Number(words[2])));
  } else if (what == "at") {
    memory_[name] = memory_[words[2]] + Number(words[3]);
  } else if (what == "map") {
    Say(what, name,
        api_.cuMemMap_(memory_[words[2]], Number(words[3]), Number(words[4]),
                       handles_[name], 0));
  } else if (what == "unmap") {
    Say(what, name, api_.cuMemUnmap_(memory_[name], Number(words[2])));
  } else if (what == "refuse-unmap") {
    using Refuse = void (*)(uint64_t, CUresult);
    reinterpret_cast<Refuse>(OfDriver("FakeCudaRefuseUnmap"))(
        Number(name), CUDA_ERROR_UNKNOWN);
    std::printf("refuse-unmap\n");
  } else if (what == "failed") {
    using Failed = const char* (*)();
    const char* const failed =
        reinterpret_cast<Failed>(OfDriver("FakeCudaFailed"))();
    std::printf("failed %s\n", failed == nullptr ? "nothing" : failed);
  } else if (what == "access") {
    Say(what, name, SetAccess(words));
  } else if (what == "granted") {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    unsigned long long flags = 9;
    const CUresult result =
        api_.cuMemGetAccess_(&flags, &location, memory_[name]);
    std::printf("granted %s %d %llu\n", name.c_str(), result, flags);
  } else {
    return false;
  }
  return true;
}
