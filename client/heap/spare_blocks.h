#ifndef GMB_CLIENT_HEAP_SPARE_BLOCKS_H_
#define GMB_CLIENT_HEAP_SPARE_BLOCKS_H_

#include <deque>

#include "client/heap/block.h"

namespace gmb::internal {

// Where the books of blocks lie, and those that no block uses now. Never gives
// memory back. Not thread-safe.
class SpareBlocks {
 public:
  SpareBlocks() = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;

  // So that the next Take cannot fail. May throw bad_alloc.
  void Reserve() {
    if (spare_ == nullptr) Return(&all_.emplace_back());
  }
  [[nodiscard]] Block* Take() {
    Block* const block = spare_;
    spare_ = block->next;
    *block = Block();
    return block;
  }
  void Return(Block* block) {
    block->next = spare_;
    spare_ = block;
  }

 private:
  std::deque<Block> all_;
  Block* spare_ = nullptr;  // linked by `next`
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_SPARE_BLOCKS_H_
