// The heap's allocations, frees and captures.
#include "client/heap/heap_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::internal {
namespace {

uintptr_t AddressOf(void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

absl::Status NotLive(const Arena& arena, void* address) {
  return absl::InvalidArgumentError(absl::StrCat(
      arena.Owns(AddressOf(address))
          ? "gmb: no live block of this heap begins at this address: it was "
            "freed already, or lies inside of one: "
          : "gmb: this address is not of this heap's memory: was it allocated "
            "elsewhere? ",
      absl::Hex(AddressOf(address), absl::kZeroPad16)));
}

// A copy of a graph's output, say. The graphs of a pool are launched in order,
// but the next one waits for no stream that is in none of them.
bool IsFreedOutside(const StreamCaptures& captures, const Block& block,
                    void* stream) {
  const PoolId pool = block.chunk->pool;
  return pool != kGeneral && stream != block.share->stream &&
         captures.Of(stream).pool != pool;
}

bool IsInItsCapture(const StreamCaptures& captures, const Block& block) {
  return block.capture != 0 &&
         captures.Of(block.share->stream).number == block.capture;
}

// A graph of the pool that is being captured may use the block, whoever made it.
bool IsInACaptureOfItsPool(const StreamCaptures& captures, const Block& block) {
  return block.chunk->pool != kGeneral && captures.In(block.chunk->pool);
}

// In the capture that made the block, its uses by streams of the capture are
// the graph's, which the order of the launches is for. Once that capture has
// ended, a stream may have used it in work of its own as well.
void EraseThoseOfGraph(const StreamCaptures& captures, const Block& block,
                       std::vector<void*>* users) {
  std::erase_if(*users, [&](void* user) {
    return captures.Of(user).pool == block.chunk->pool;
  });
}

}  // namespace

HeapCore::HeapCore(std::unique_ptr<ChunkSource> source,
                   std::unique_ptr<device::StreamFences> fences,
                   Options options)
    : options_(std::move(options)),
      source_(std::move(source)),
      fences_(std::move(fences)),
      pace_(options_.growth_run),
      chunks_(&arena_),
      ledger_(fences_.get(), &arena_),
      news_(options_.on_empty) {}

absl::StatusOr<void*> HeapCore::Allocate(uint64_t bytes, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (bytes == 0) return nullptr;
  if (bytes > Arena::kMostBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "gmb: no lease may have so many bytes: ask for less: bytes=", bytes));
  }
  const uint64_t rounded = Arena::RoundUp(bytes);
  {
    BriefLock lock(&mu_);
    if (void* const taken = Take(rounded, stream); taken != nullptr)
      return taken;
  }
  return AllocateSlowly(rounded, stream);
}

void* HeapCore::Take(uint64_t bytes, void* stream) {
  const StreamCaptures::Capture capture = captures_.Of(stream);
  Block* const block = arena_.Allocate(bytes, stream, capture.pool);
  if (block == nullptr) return nullptr;
  block->capture = capture.number;
  ++counts_.allocations;
  counts_.peak_allocated_bytes =
      std::max(counts_.peak_allocated_bytes, arena_.sums().live_bytes);
  news_.Tell(arena_.sums().empty_bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a block is an address and a size
  return reinterpret_cast<void*>(block->address);
}

absl::Status HeapCore::Free(void* address, std::optional<void*> stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (address == nullptr) return absl::OkStatus();
  BriefLock lock(&mu_);
  Block* const block = arena_.Find(AddressOf(address));
  if (block == nullptr) return NotLive(arena_, address);
  ++counts_.frees;
  void* const on = stream.value_or(block->share->stream);
  if (block->recorded || IsFreedOutside(captures_, *block, on))
    return FreeWithUsers(block, on);
  arena_.Free(block, on);
  news_.Tell(arena_.sums().empty_bytes);
  return absl::OkStatus();
}

// A capture of the block's pool may use it when the graph is launched, whatever
// the streams have done.
absl::Status HeapCore::FreeDone(void* address) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (address == nullptr) return absl::OkStatus();
  BriefLock lock(&mu_);
  Block* const block = arena_.Find(AddressOf(address));
  if (block == nullptr) return NotLive(arena_, address);
  ++counts_.frees;
  if (block->recorded || IsInACaptureOfItsPool(captures_, *block))
    return FreeWithUsers(block, std::nullopt);
  arena_.FreeForAnyone(block);
  news_.Tell(arena_.sums().empty_bytes);
  return absl::OkStatus();
}

absl::Status HeapCore::FreeWithUsers(Block* block,
                                     std::optional<void*> stream) {
  std::vector<void*> users = recorded_[block];
  if (stream.has_value()) {
    std::erase(users, *stream);  // its order is that of the free
    if (IsFreedOutside(captures_, *block, *stream)) users.push_back(*stream);
  }
  const bool in_its_capture = IsInItsCapture(captures_, *block);
  const bool waits_for_capture =
      !stream.has_value() && IsInACaptureOfItsPool(captures_, *block);
  absl::Status held;
  if (!users.empty() && !captures_.Any()) {
    held = ledger_.Hold(block, stream, std::move(users));
    ledger_.Poll();
  } else if (!users.empty() || waits_for_capture) {
    if (in_its_capture) EraseThoseOfGraph(captures_, *block, &users);
    ledger_.HoldDeferred(block, stream, std::move(users),
                         in_its_capture || waits_for_capture);
  } else if (stream.has_value()) {
    arena_.Free(block, *stream);
  } else {
    arena_.FreeForAnyone(block);
  }
  recorded_.erase(block);
  news_.Tell(arena_.sums().empty_bytes);
  return held;
}

absl::Status HeapCore::RecordStream(void* address, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (address == nullptr) return absl::OkStatus();
  BriefLock lock(&mu_);
  Block* const block = arena_.Find(AddressOf(address));
  if (block == nullptr) return NotLive(arena_, address);
  std::vector<void*>& users = recorded_[block];
  if (std::find(users.begin(), users.end(), stream) == users.end())
    users.push_back(stream);
  block->recorded = true;
  return absl::OkStatus();
}

absl::Status HeapCore::DetachStream(void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  base::MutexLock quiet(&quiet_mu_);
  absl::StatusOr<FenceLedger::Fence> fence;
  uint64_t mark = 0;
  {
    BriefLock lock(&mu_);
    if (captures_.Any()) {
      return absl::FailedPreconditionError(
          "gmb: a capture is under way: detach streams before or after it");
    }
    fence = ledger_.MarkStream(stream);
    if (!fence.ok()) mark = arena_.Mark(stream);
  }
  // Where the driver takes no event in the stream, all work is waited for.
  GMB_RETURN_IF_ERROR(fence.ok() ? (*fence)->Wait() : fences_->WaitForAll());
  BriefLock lock(&mu_);
  arena_.Reached(stream, mark);
  ledger_.Forget(stream);
  ledger_.Poll();
  // Another thread may have put a mark on it meanwhile.
  arena_.EndStream(stream, ledger_.HasMarkOn(stream));
  for (auto& [block, users] : recorded_) std::erase(users, stream);
  return absl::OkStatus();
}

HeapStatistics HeapCore::statistics() const {
  if (fork_guard_.InChild()) return {};
  BriefLock lock(&mu_);
  HeapStatistics statistics = counts_;
  const HeapChunks::Figures& chunks = chunks_.figures();
  statistics.growths = chunks.added;
  statistics.returned_leases = chunks.taken_out;
  statistics.peak_leased_bytes = chunks.peak_bytes;
  const Arena::Sums& sums = arena_.sums();
  statistics.allocated_bytes = sums.live_bytes;
  statistics.held_bytes = sums.held_bytes;
  statistics.leased_bytes = sums.chunk_bytes;
  statistics.empty_bytes = sums.empty_bytes;
  statistics.largest_free_bytes = arena_.shares().LargestFreeBytes();
  statistics.blocks = sums.live_blocks;
  statistics.leases = sums.chunks;
  return statistics;
}

absl::Status HeapCore::BeginCapture(PoolId pool, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  base::MutexLock quiet(&quiet_mu_);
  BriefLock lock(&mu_);
  if (!captures_.Any()) ledger_.Poll();  // not in the capture itself
  // Blocks freed since the last capture are free for this one: the program
  // launches in order.
  const bool first = !captures_.In(pool);
  if (!captures_.Begin(pool, stream)) {
    return absl::FailedPreconditionError(
        "gmb: this stream's capture has begun already: end it first");
  }
  if (first) arena_.SettlePool(pool);
  news_.Tell(arena_.sums().empty_bytes);
  return absl::OkStatus();
}

absl::Status HeapCore::EndCapture(PoolId pool, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  BriefLock lock(&mu_);
  if (!captures_.End(pool, stream)) {
    return absl::FailedPreconditionError(
        "gmb: this stream's capture has not begun with this pool");
  }
  if (!captures_.In(pool)) {
    ledger_.FreeDeferred(pool);
    arena_.SettlePool(pool);
  }
  if (!captures_.Any()) CapturesEnded();
  return absl::OkStatus();
}

void HeapCore::CapturesEnded() {
  ledger_.RecordDeferred();
  // Chunks that were asked for ahead may go back now.
  if (chunks_.HasAhead()) news_.TellAgain();
}

void HeapCore::ClosePool(PoolId pool) {
  BriefLock lock(&mu_);
  captures_.EndAllIn(pool);
  ledger_.FreeDeferred(pool);
  if (!captures_.Any()) CapturesEnded();
  arena_.DissolvePool(pool);
  news_.Tell(arena_.sums().empty_bytes);
}

}  // namespace gmb::internal
