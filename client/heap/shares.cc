// The heap's free memory: for whom it is free.
#include "client/heap/shares.h"

#include <algorithm>

namespace gmb::internal {

Share* Shares::Find(PoolId pool, void* stream) {
  auto found = of_streams_.find({pool, stream});
  if (found == of_streams_.end()) {
    auto share = std::make_unique<Share>();
    share->pool = pool;
    share->stream = stream;
    found =
        of_streams_.emplace(std::pair(pool, stream), std::move(share)).first;
  }
  return found->second.get();
}

Share* Shares::FindAnyone(PoolId pool) {
  auto found = of_anyone_.find(pool);
  if (found == of_anyone_.end()) {
    auto share = std::make_unique<Share>();
    share->pool = pool;
    share->anyone = true;
    found = of_anyone_.emplace(pool, std::move(share)).first;
  }
  return found->second.get();
}

void Shares::EndPool(PoolId pool) {
  last_ = nullptr;
  std::erase_if(of_streams_, [pool](const auto& entry) {
    return entry.first.first == pool;
  });
  of_anyone_.erase(pool);
}

void Shares::Forget(void* stream) {
  last_ = nullptr;
  std::erase_if(of_streams_, [stream](const auto& entry) {
    const Share& share = *entry.second;
    return share.stream == stream && share.used == 0 && share.free.count() == 0;
  });
}

std::vector<void*> Shares::StreamsToMark(std::optional<void*> except) const {
  std::vector<void*> streams;
  for (const auto& [key, share] : of_streams_) {
    if (key.first != kGeneral || share->free.count() == 0) continue;
    if (share->freed_since_mark && key.second != except)
      streams.push_back(key.second);
  }
  return streams;
}

uint64_t Shares::LargestFreeBytes() const {
  uint64_t largest = general_->free.LargestBytes();
  for (const auto& [key, share] : of_streams_) {
    if (key.first == kGeneral)
      largest = std::max(largest, share->free.LargestBytes());
  }
  return largest;
}

}  // namespace gmb::internal
