#ifndef GMB_CLIENT_HEAP_FREE_INDEX_H_
#define GMB_CLIENT_HEAP_FREE_INDEX_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "client/heap/block.h"

namespace gmb::internal {

// Free blocks by size: two levels of classes, sixteen to a power of two, so
// that insert, remove and a good fit cost the same however many there are. Not
// thread-safe; allocates nothing.
class FreeIndex {
 public:
  void Insert(Block* block);
  void Remove(Block* block);

  // A block of at least `bytes` (a multiple of kBlockBytes, not 0): the
  // smallest that fits of the first few of its class, otherwise one of the next
  // class that has any. Null: none is large enough.
  [[nodiscard]] Block* Find(uint64_t bytes) const;

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] uint64_t LargestBytes() const;

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint64_t powers = powers_; powers != 0; powers &= powers - 1) {
      const auto power = static_cast<unsigned>(std::countr_zero(powers));
      for (unsigned steps = steps_[power]; steps != 0; steps &= steps - 1) {
        const auto step = static_cast<unsigned>(std::countr_zero(steps));
        for (Block* block = heads_[power][step]; block != nullptr;) {
          Block* const next = block->next;  // `visit` may remove it
          visit(block);
          block = next;
        }
      }
    }
  }

 private:
  static constexpr unsigned kSteps = 16;   // of a power of two
  static constexpr unsigned kPowers = 52;  // up to 2^64 bytes

  struct Class {
    unsigned power;
    unsigned step;
  };
  static Class ClassOf(uint64_t bytes);
  [[nodiscard]] Block* FirstAbove(Class below) const;

  std::array<std::array<Block*, kSteps>, kPowers> heads_{};
  uint64_t powers_ = 0;                    // those with any block
  std::array<uint16_t, kPowers> steps_{};  // of each power, those with any
  uint64_t bytes_ = 0;
  size_t count_ = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_FREE_INDEX_H_
