#ifndef GMB_CLIENT_HEAP_FENCE_LEDGER_H_
#define GMB_CLIENT_HEAP_FENCE_LEDGER_H_

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/heap/arena.h"
#include "device/stream_fences.h"

namespace gmb::internal {

// The fences that an arena's free memory waits for: those behind a stream's
// frees, and those of blocks that several streams used. Not thread-safe; asks
// the driver while its caller's lock is held, so it does so only where an
// allocation would otherwise fail, or a block was recorded.
class FenceLedger {
 public:
  using Fence = std::shared_ptr<device::StreamFence>;

  FenceLedger(device::StreamFences* fences, Arena* arena)
      : fences_(fences), arena_(arena) {}

  // A fence behind all that streams other than `except` have freed. A stream
  // that refuses is left out.
  void MarkStreams(std::optional<void*> except);
  // The same for one stream, also if it has freed nothing.
  [[nodiscard]] absl::StatusOr<Fence> MarkStream(void* stream);
  // Takes a live block; it becomes `stream`'s, or anyone's, when `users` have done
  // what is on them now. After an error RecordDeferred tries it again.
  [[nodiscard]] absl::Status Hold(Block* block, std::optional<void*> stream,
                                  std::vector<void*> users);
  // The same while captures are under way, and no fences may be made: that is
  // left to RecordDeferred. A block that a capture of its pool may use is held
  // until FreeDeferred of the pool at least, also without `users`.
  void HoldDeferred(Block* block, std::optional<void*> stream,
                    std::vector<void*> users, bool in_capture);
  void RecordDeferred();
  void FreeDeferred(PoolId pool);
  // The stream has done all, and does not exist any more.
  void Forget(void* stream);
  // Whether Poll has a mark on it yet to see reached.
  [[nodiscard]] bool HasMarkOn(void* stream) const;

  // Gives the arena the blocks whose fences have been reached, and destroys the
  // fences: those of a stream that has done all do not outlive it.
  void Poll();
  // The fences that Poll has not seen reached.
  [[nodiscard]] std::vector<Fence> Open() const;

 private:
  struct MarkInStream {
    void* stream;
    uint64_t mark;
    Fence fence;
  };
  struct Held {
    Block* block;
    std::optional<void*> stream;  // none: anyone
    std::vector<void*> unrecorded;
    std::vector<Fence> fences;
    bool in_capture;
  };

  absl::Status RecordUsers(Held* held);
  void Free(const Held& held);

  device::StreamFences* const fences_;
  Arena* const arena_;
  std::list<MarkInStream> marks_;
  std::list<Held> held_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_FENCE_LEDGER_H_
