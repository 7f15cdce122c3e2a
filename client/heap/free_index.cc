// The heap's free memory by size.
#include "client/heap/free_index.h"

#include <algorithm>
#include <bit>

namespace gmb::internal {

FreeIndex::Class FreeIndex::ClassOf(uint64_t bytes) {
  const uint64_t units = bytes / kBlockBytes;
  if (units < kSteps) return {0, static_cast<unsigned>(units)};
  const auto log = static_cast<unsigned>(std::bit_width(units)) - 1;
  return {log - 3, static_cast<unsigned>(units >> (log - 4)) % kSteps};
}

void FreeIndex::Insert(Block* block) {
  const Class at = ClassOf(block->bytes);
  Block*& head = heads_[at.power][at.step];
  block->previous = nullptr;
  block->next = head;
  if (head != nullptr) head->previous = block;
  head = block;
  powers_ |= uint64_t{1} << at.power;
  steps_[at.power] |= static_cast<uint16_t>(1U << at.step);
  bytes_ += block->bytes;
  ++count_;
}

void FreeIndex::Remove(Block* block) {
  const Class at = ClassOf(block->bytes);
  Block*& head = heads_[at.power][at.step];
  (block->previous == nullptr ? head : block->previous->next) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  block->previous = block->next = nullptr;
  if (head == nullptr) {
    steps_[at.power] &= static_cast<uint16_t>(~(1U << at.step));
    if (steps_[at.power] == 0) powers_ &= ~(uint64_t{1} << at.power);
  }
  bytes_ -= block->bytes;
  --count_;
}

Block* FreeIndex::Find(uint64_t bytes) const {
  if (powers_ == 0) return nullptr;
  constexpr int kMostLooks = 16;
  const Class at = ClassOf(bytes);
  Block* best = nullptr;
  Block* block = heads_[at.power][at.step];
  for (int looks = 0; block != nullptr && looks < kMostLooks; ++looks) {
    if (block->bytes == bytes) return block;
    if (block->bytes > bytes && (best == nullptr || block->bytes < best->bytes))
      best = block;
    block = block->next;
  }
  if (best != nullptr) return best;
  best = FirstAbove(at);
  if (best != nullptr) return best;
  // Nothing larger: then every one of the class is worth a look.
  for (; block != nullptr; block = block->next) {
    if (block->bytes >= bytes) return block;
  }
  return nullptr;
}

Block* FreeIndex::FirstAbove(Class below) const {
  const unsigned rest = (~0U << below.step << 1) & steps_[below.power];
  if (rest != 0) {
    return heads_[below.power][static_cast<unsigned>(std::countr_zero(rest))];
  }
  const uint64_t powers = powers_ & (~uint64_t{0} << below.power << 1);
  if (powers == 0) return nullptr;
  const auto power = static_cast<unsigned>(std::countr_zero(powers));
  return heads_[power][static_cast<unsigned>(
      std::countr_zero(unsigned{steps_[power]}))];
}

uint64_t FreeIndex::LargestBytes() const {
  if (powers_ == 0) return 0;
  const auto power = static_cast<unsigned>(std::bit_width(powers_)) - 1;
  const auto step =
      static_cast<unsigned>(std::bit_width(unsigned{steps_[power]})) - 1;
  uint64_t largest = 0;
  for (Block* block = heads_[power][step]; block != nullptr;
       block = block->next) {
    largest = std::max(largest, block->bytes);
  }
  return largest;
}

}  // namespace gmb::internal
