#ifndef GMB_CLIENT_PRELOAD_RANKS_H_
#define GMB_CLIENT_PRELOAD_RANKS_H_

namespace gmb::preload {

// A program has looked `name` up and found `real`, in whose place it gets
// `ours`, which will call it. Does nothing for names that are not NCCL's.
void NoteRealOfNccl(const char* name, void* real, void* ours);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_RANKS_H_
