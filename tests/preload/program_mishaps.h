#ifndef GMB_TESTS_PRELOAD_PROGRAM_MISHAPS_H_
#define GMB_TESTS_PRELOAD_PROGRAM_MISHAPS_H_

#include <map>
#include <string>
#include <vector>

#include "tests/preload/program_api.h"

// Steps of a program that things happen to, each with a line of output.
class MishapSteps {
 public:
  MishapSteps(const Api& api, std::map<std::string, CUdeviceptr>* memory)
      : api_(api), memory_(*memory) {}

  // False when it is none of them:
  //   end-in-copy NAME exit|kill: a thread ends inside of the driver's copy to
  //     it, unwound or not
  //   cancel-copy NAME FILE: a thread is cancelled at any point of a copy that it
  //     makes before the file is there
  //   fork-in-copy NAME: the driver forks inside of a copy to it
  //   pin FILE: locks a page of host memory, which takes the driver until the file
  //     is there
  //   refuse-threads: no more can be started, where thread_refusal.cc is loaded
  //   gpu-done: the GPU does all work, and nobody waits
  //   fault CODE: a kernel goes astray
  bool Do(const std::vector<std::string>& words);

 private:
  [[nodiscard]] CUresult Copy(const std::string& name) const;
  void EndInCopy(const std::string& name, bool unwound);
  void CancelCopy(const std::string& name, const std::string& file);
  void Pin(const std::string& file) const;
  void PinNowAndThen(const std::string& file) const;

  const Api& api_;
  std::map<std::string, CUdeviceptr>& memory_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_MISHAPS_H_
