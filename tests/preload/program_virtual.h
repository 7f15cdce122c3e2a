#ifndef GMB_TESTS_PRELOAD_PROGRAM_VIRTUAL_H_
#define GMB_TESTS_PRELOAD_PROGRAM_VIRTUAL_H_

#include <map>
#include <string>
#include <vector>

#include "tests/device/driver_of_programs.h"
#include "tests/preload/program_api.h"

// Steps of program_main.cc with memory that the program makes and maps itself.
// HANDLE is a handle's name, AT that of an address:
//   reserve AT BYTES, unreserve AT BYTES, at AT OTHER-AT OFFSET
//   create HANDLE BYTES [TYPES] [rdma], nccl-create HANDLE BYTES (as NCCL),
//   release HANDLE, retain HANDLE AT, properties HANDLE,
//   export HANDLE [FILE], import HANDLE FILE (where another process exported it),
//   same-handle HANDLE OTHER-HANDLE, fabric,
//   multicast HANDLE BYTES, and by the newer form future-multicast HANDLE and
//   future-release HANDLE
//   map HANDLE AT BYTES [OFFSET], unmap AT BYTES, access AT BYTES [read],
//   granted AT
class VirtualSteps {
 public:
  // Addresses are shared with the other steps; both outlive it.
  VirtualSteps(const Api& api, std::map<std::string, CUdeviceptr>* memory)
      : api_(api), memory_(*memory) {}

  // False when it is another's step.
  bool Do(const std::vector<std::string>& words);

 private:
  bool Handles(const std::vector<std::string>& words);
  bool Addresses(const std::vector<std::string>& words);
  CUresult Create(const std::vector<std::string>& words);
  CUresult Export(CUmemGenericAllocationHandle handle,
                  const std::string& file) const;
  CUresult Import(CUmemGenericAllocationHandle* handle,
                  const std::string& file) const;
  CUresult SetAccess(const std::vector<std::string>& words);

  const Api& api_;
  std::map<std::string, CUdeviceptr>& memory_;
  std::map<std::string, CUmemGenericAllocationHandle> handles_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_VIRTUAL_H_
