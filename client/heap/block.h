#ifndef GMB_CLIENT_HEAP_BLOCK_H_
#define GMB_CLIENT_HEAP_BLOCK_H_

#include <cstdint>

namespace gmb::internal {

// Every block begins at a multiple of it, and is a multiple of it long.
// cudaMalloc promises 256.
inline constexpr uint64_t kBlockBytes = 512;

struct Chunk;
struct Share;

// A piece of a chunk. The pieces of a chunk lie one behind the other and cover
// it. The books of a block are kept here and never in the memory itself, which
// is the device's, and may be evicted.
struct Block {
  enum class State : uint8_t {
    kFree,
    kLive,  // the program's
    kHeld,  // freed, and other streams may still use it
  };

  uintptr_t address = 0;
  uint64_t bytes = 0;
  Chunk* chunk = nullptr;
  Block* before = nullptr;  // in the chunk
  Block* after = nullptr;
  Block* previous = nullptr;  // among the free blocks of a size class
  Block* next = nullptr;
  // Free: of the stream that it is free for. Otherwise: of the stream that it
  // was allocated for.
  Share* share = nullptr;
  uint64_t marks = 0;  // free: its share's when it was freed
  State state = State::kFree;
  bool recorded = false;  // other streams use it, too
  uint32_t capture = 0;   // that it was allocated in; 0: in none
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_BLOCK_H_
