#ifndef GMB_CLIENT_HEAP_ADDRESS_TABLE_H_
#define GMB_CLIENT_HEAP_ADDRESS_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/heap/block.h"

namespace gmb::internal {

// The live blocks by address: open addressing, so that a look-up is one or two
// cache lines. Not thread-safe.
class AddressTable {
 public:
  AddressTable() : slots_(kFirstSlots) {}

  // So that the next Insert cannot fail. May throw bad_alloc.
  void MakeRoom() {
    if ((count_ + 1) * 2 <= slots_.size()) return;
    std::vector<Block*> old(slots_.size() * 2);
    old.swap(slots_);
    count_ = 0;
    for (Block* block : old) {
      if (block != nullptr) Insert(block);
    }
  }

  void Insert(Block* block) {
    size_t at = Home(block->address);
    while (slots_[at] != nullptr) at = Next(at);
    slots_[at] = block;
    ++count_;
  }

  [[nodiscard]] Block* Find(uintptr_t address) const {
    for (size_t at = Home(address); slots_[at] != nullptr; at = Next(at)) {
      if (slots_[at]->address == address) return slots_[at];
    }
    return nullptr;
  }

  // `block` is in it.
  void Erase(const Block* block) {
    size_t gap = Home(block->address);
    while (slots_[gap] != block) gap = Next(gap);
    // Those behind it move up, unless that is before their home.
    for (size_t at = Next(gap); slots_[at] != nullptr; at = Next(at)) {
      const size_t home = Home(slots_[at]->address);
      if (((at - home) & Mask()) < ((at - gap) & Mask())) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = nullptr;
    --count_;
  }

  [[nodiscard]] size_t count() const { return count_; }

 private:
  static constexpr size_t kFirstSlots = 256;

  [[nodiscard]] size_t Mask() const { return slots_.size() - 1; }
  [[nodiscard]] size_t Home(uintptr_t address) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15U;
    return (uint64_t{address / kBlockBytes} * kGolden >> 24) & Mask();
  }
  [[nodiscard]] size_t Next(size_t at) const { return (at + 1) & Mask(); }

  std::vector<Block*> slots_;  // a power of two of them
  size_t count_ = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_ADDRESS_TABLE_H_
