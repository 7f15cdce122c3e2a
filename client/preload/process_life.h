#ifndef GMB_CLIENT_PRELOAD_PROCESS_LIFE_H_
#define GMB_CLIENT_PRELOAD_PROCESS_LIFE_H_

namespace gmb::preload {

// Two moments after which leases are not to be touched any more. Lock-free.

// Called before the first session is opened: from then on a child of fork()
// has state that is its parent's.
void NoteUse();
// This process was forked from one that had noted use. CUDA itself does not
// work there either: its calls say CUDA_ERROR_NOT_INITIALIZED.
[[nodiscard]] bool InForkedChild();

// Called once the client library is loaded, so that its destructors run after
// Exiting() has become true.
void NoteExitFromNowOn();
// exit() has begun: destructors of libraries run, and the kernel is about to
// give everything back.
[[nodiscard]] bool Exiting();

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_PROCESS_LIFE_H_
