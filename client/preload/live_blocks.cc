// `gmb run`: the allocations that the program has.
#include "client/preload/live_blocks.h"

#include <iterator>

namespace gmb::preload {

std::optional<Block> LiveBlocks::Take(uint64_t start) {
  const auto found = blocks_.find(start);
  if (found == blocks_.end()) return std::nullopt;
  const Block block = found->second;
  blocks_.erase(found);
  return block;
}

std::vector<Block> LiveBlocks::TakeOf(const HomeContext& home) {
  std::vector<Block> taken;
  for (const auto& [start, block] : blocks_) {
    if (block.home == home) taken.push_back(block);
  }
  for (const Block& block : taken) blocks_.erase(block.start);
  return taken;
}

const Block* LiveBlocks::Find(uint64_t address) const {
  const auto behind = blocks_.upper_bound(address);
  if (behind == blocks_.begin()) return nullptr;
  const Block& block = std::prev(behind)->second;
  return address - block.start < block.bytes ? &block : nullptr;
}

LeaseRange* LiveBlocks::OwnLease(uint64_t start) {
  const auto found = blocks_.find(start);
  if (found == blocks_.end() || !found->second.lease.has_value())
    return nullptr;
  return &*found->second.lease;
}

bool LiveBlocks::InRange(uint64_t address) const {
  const auto behind = ranges_.upper_bound(address);
  if (behind == ranges_.begin()) return false;
  const auto& [start, bytes] = *std::prev(behind);
  return address - start < bytes;
}

}  // namespace gmb::preload
