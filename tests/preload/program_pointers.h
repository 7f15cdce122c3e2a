#ifndef GMB_TESTS_PRELOAD_PROGRAM_POINTERS_H_
#define GMB_TESTS_PRELOAD_PROGRAM_POINTERS_H_

#include <map>
#include <string>
#include <vector>

#include "tests/device/driver_of_programs.h"
#include "tests/preload/program_api.h"

// A step of program_main.cc that asks what memory is of:
//   of NAME: its context (none, primary of device 0, own, another), its pool, and
//   the types of handles that it may have; "twice" where the two ways to ask
//   have other answers
class PointerSteps {
 public:
  // The other steps have these; all outlive it.
  PointerSteps(const Api& api, std::map<std::string, CUdeviceptr>* memory,
               const std::map<std::string, CUmemoryPool>* pools,
               const CUcontext* own)
      : api_(api), memory_(*memory), pools_(*pools), own_(*own) {}

  // False when it is another's step.
  bool Do(const std::vector<std::string>& words);

 private:
  [[nodiscard]] std::string TextOf(CUcontext context, CUmemoryPool pool,
                                   unsigned long long types) const;

  const Api& api_;
  std::map<std::string, CUdeviceptr>& memory_;
  const std::map<std::string, CUmemoryPool>& pools_;
  const CUcontext& own_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_POINTERS_H_
