#ifndef GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_
#define GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_

namespace gmb::preload {

// Uses that leased memory does not have, and how a person goes without them: the
// program's own switches, and that of `gmb run`. Each is said once in a process;
// programs are told CUDA_ERROR_NOT_SUPPORTED (801).

// A handle for other machines. Programs ask for one and go on without: said with
// GMB_RUN_VERBOSE alone.
void SayNoFabricHandle();

// Part of a multicast object. The answer of the call.
[[nodiscard]] int RefuseMulticast();

// A handle of leased memory for a newer form of this function. The answer of the
// call.
[[nodiscard]] int RefuseHandle(const char* function);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_
