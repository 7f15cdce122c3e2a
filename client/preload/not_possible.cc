// Calls that leased memory cannot answer: which switch of the program leaves
// them out. (Names of switches: vLLM's envs.py and NVSHMEM's list of
// environment variables. NCCL's own memory is not leased.)
#include "client/preload/not_possible.h"

#include <atomic>
#include <cstring>
#include <string>

#include "client/preload/gated_wrappers.h"
#include "client/preload/say.h"

namespace gmb::preload {
namespace {

const std::string& Leased() {
  static const std::string& text = *new std::string(
      "; or run it with `gmb run --vmm native`: then memory of "
      "cuMemCreate is the driver's, and not leased");
  return text;
}

}  // namespace

void SayNoFabricHandle() {
  static std::atomic<bool> said = false;
  if (said.exchange(true)) return;
  Say("leased memory has no handles for other machines "
      "(CU_MEM_HANDLE_TYPE_FABRIC): the program is told 801, as on a GPU "
      "without them. NVSHMEM_CUMEM_HANDLE_TYPE=FILE_DESCRIPTOR (NVSHMEM) "
      "leaves them out" +
      Leased());
}

int RefuseMulticast() {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) {
    SayAlways(
        "leased memory cannot be part of a multicast object "
        "(cuMulticastBindMem): the program is told 801. These leave it out: "
        "VLLM_ALLREDUCE_USE_SYMM_MEM=0 (vLLM), NVSHMEM_DISABLE_NVLS=1 "
        "(NVSHMEM)" +
        Leased());
  }
  return kNotSupported;
}

int RefuseHandle(const char* function) {
  if (std::strcmp(function, "cuMulticastBindMem") == 0)
    return RefuseMulticast();
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) {
    SayAlways(
        std::string("a handle of leased memory went to a newer form of ") +
        function +
        " than gmb knows: the program is told 801. Update gmb; or run the "
        "program with `gmb run --vmm native`: then memory of cuMemCreate is "
        "the driver's, and not leased");
  }
  return kNotSupported;
}

}  // namespace gmb::preload
