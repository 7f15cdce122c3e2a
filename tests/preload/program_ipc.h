#ifndef GMB_TESTS_PRELOAD_PROGRAM_IPC_H_
#define GMB_TESTS_PRELOAD_PROGRAM_IPC_H_

#include <map>
#include <string>
#include <vector>

#include "tests/preload/program_api.h"

// Steps with memory that processes share, each with a line of output: the handle
// of an allocation goes through a file.
class IpcSteps {
 public:
  IpcSteps(const Api& api, std::map<std::string, CUdeviceptr>* memory)
      : api_(api), memory_(*memory) {}

  // False when it is none of them:
  //   ipc-handle NAME FILE, ipc-open NAME FILE, ipc-close NAME
  //   ipc-spoil FILE: another secret stands in it
  //   extent NAME OFFSET: what its attributes say of the allocation there
  bool Do(const std::vector<std::string>& words);

 private:
  [[nodiscard]] CUresult GetHandle(CUdeviceptr address,
                                   const std::string& file) const;
  void SayExtent(const std::string& name, CUdeviceptr at, size_t offset) const;

  const Api& api_;
  std::map<std::string, CUdeviceptr>& memory_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_IPC_H_
