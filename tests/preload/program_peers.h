#ifndef GMB_TESTS_PRELOAD_PROGRAM_PEERS_H_
#define GMB_TESTS_PRELOAD_PROGRAM_PEERS_H_

#include <map>
#include <string>
#include <vector>

#include "tests/device/driver_of_programs.h"
#include "tests/preload/program_api.h"

// Steps of program_main.cc with memory of more than one GPU, in the current
// context, and so on its GPU:
//   store NAME BYTES BYTE: as a kernel
//   copy NAME OTHER BYTES STREAM: from the other to the first, by the stream
//   active DEVICE: whether its primary context lives
class PeerSteps {
 public:
  // Addresses and streams are shared with the other steps; all outlive it.
  PeerSteps(const Api& api, std::map<std::string, CUdeviceptr>* memory,
            const std::vector<CUstream>* streams)
      : api_(api), memory_(*memory), streams_(*streams) {}

  // False when it is another's step.
  bool Do(const std::vector<std::string>& words);

 private:
  const Api& api_;
  std::map<std::string, CUdeviceptr>& memory_;
  const std::vector<CUstream>& streams_;
};

#endif  // GMB_TESTS_PRELOAD_PROGRAM_PEERS_H_
