#ifndef GMB_TESTS_PRELOAD_PROGRAM_FUTURE_H_
#define GMB_TESTS_PRELOAD_PROGRAM_FUTURE_H_

#include <map>
#include <string>
#include <vector>

#include "device/cuda/abi/driver_api.h"

// Steps with functions of the driver that gmb does not know, each with a line of
// output.
class FutureSteps {
 public:
  explicit FutureSteps(std::map<std::string, CUdeviceptr>* memory)
      : memory_(*memory) {}

  // False when it is none of them:
  //   find NAME HOW: how is dlsym, dlvsym, next (RTLD_NEXT), proc or proc-14
  //     (of CUDA 14.0); says "none", "own" (the driver's own address), or "other"
  //   same-function NAME OTHER: whether those have the same address
  //   find-numbers COUNT: of so many functions how many are "other"
  //   call-number NUMBER: one of those, which answers its number
  //   future-launch NAME BYTES VALUE: fills memory by a function that was found
  //   future-launches NAME BYTES VALUE: eight threads at once, each a part
  //   future-set NAME BYTES VALUE FUNCTION: by the newer form of cuMemsetD8, as
  //     it was found
  //   future-alloc NAME BYTES: by the newer form of cuMemAlloc, as it was found
  bool Do(const std::vector<std::string>& words);

 private:
  void Find(const std::string& name, const std::string& how);
  void Launches(CUdeviceptr to, uint64_t bytes, unsigned value);

  std::map<std::string, CUdeviceptr>& memory_;
  std::map<std::string, void*> found_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_FUTURE_H_
