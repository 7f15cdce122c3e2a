#ifndef GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_
#define GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_

namespace gmb::preload {

// What leased memory cannot be, with what a person can do about it: the program's
// own switches, and that of `gmb run`. Each is said once in a process; programs
// are told CUDA_ERROR_NOT_SUPPORTED (801).

// A handle for other machines. Programs ask for one and go on without: said with
// GMB_RUN_VERBOSE alone.
void SayNoFabricHandle();

// Part of a multicast object. The answer of the call.
[[nodiscard]] int RefuseMulticast();

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_NOT_POSSIBLE_H_
