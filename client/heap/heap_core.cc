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

}  // namespace

HeapCore::HeapCore(std::unique_ptr<ChunkSource> source,
                   std::unique_ptr<device::StreamFences> fences,
                   Options options)
    : options_(std::move(options)),
      source_(std::move(source)),
      fences_(std::move(fences)),
      ledger_(fences_.get(), &arena_) {}

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
  const Capture capture = captures_.empty() ? Capture() : CaptureOf(stream);
  Block* const block = arena_.Allocate(bytes, stream, capture.pool);
  if (block == nullptr) return nullptr;
  block->capture = capture.number;
  ++counts_.allocations;
  counts_.peak_allocated_bytes =
      std::max(counts_.peak_allocated_bytes, arena_.sums().live_bytes);
  TellEmpty();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a block is an address and a size
  return reinterpret_cast<void*>(block->address);
}

HeapCore::Capture HeapCore::CaptureOf(void* stream) const {
  const auto found = captures_.find(stream);
  return found == captures_.end() ? Capture() : found->second;
}

void HeapCore::TellEmpty() {
  const uint64_t empty_bytes = arena_.sums().empty_bytes;
  if (empty_bytes == told_empty_bytes_) return;
  told_empty_bytes_ = empty_bytes;
  if (options_.on_empty != nullptr) options_.on_empty(empty_bytes);
}

void HeapCore::TellAhead() {
  if (!ahead_.empty() && options_.on_empty != nullptr)
    options_.on_empty(told_empty_bytes_);
}

absl::Status HeapCore::Free(void* address, std::optional<void*> stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (address == nullptr) return absl::OkStatus();
  BriefLock lock(&mu_);
  Block* const block = arena_.Find(AddressOf(address));
  if (block == nullptr) return NotLive(address);
  ++counts_.frees;
  void* const on = stream.value_or(block->share->stream);
  if (block->recorded) return FreeRecorded(block, on);
  arena_.Free(block, on);
  TellEmpty();
  return absl::OkStatus();
}

absl::Status HeapCore::FreeRecorded(Block* block, void* stream) {
  std::vector<void*> users = recorded_[block];
  std::erase(users, stream);  // its order is that of the free
  absl::Status held;
  if (users.empty()) {
    arena_.Free(block, stream);
  } else if (captures_.empty()) {
    held = ledger_.Hold(block, stream, std::move(users));
    ledger_.Poll();
  } else {
    FreeAmidCaptures(block, stream, std::move(users));
  }
  recorded_.erase(block);
  TellEmpty();
  return held;
}

// In the capture that made the block, its uses by streams of the capture are
// the graph's, which the order of the launches is for. Once that capture has
// ended, a stream may have used it in work of its own as well.
void HeapCore::FreeAmidCaptures(Block* block, void* stream,
                                std::vector<void*> users) {
  const bool in_its_capture =
      block->capture != 0 &&
      CaptureOf(block->share->stream).number == block->capture;
  if (in_its_capture) {
    std::erase_if(users, [&](void* user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return CaptureOf(user).pool == block->chunk->pool;
    });
  }
  ledger_.HoldDeferred(block, stream, std::move(users), in_its_capture);
}

bool HeapCore::Captures(PoolId pool) const {
  return std::any_of(
      captures_.begin(), captures_.end(),
      [pool](const auto& entry) { return entry.second.pool == pool; });
}

absl::Status HeapCore::NotLive(void* address) const {
  return absl::InvalidArgumentError(absl::StrCat(
      arena_.Owns(AddressOf(address))
          ? "gmb: no live block of this heap begins at this address: it was "
            "freed already, or lies inside of one: "
          : "gmb: this address is not of this heap's memory: was it allocated "
            "elsewhere? ",
      absl::Hex(AddressOf(address), absl::kZeroPad16)));
}

absl::Status HeapCore::RecordStream(void* address, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (address == nullptr) return absl::OkStatus();
  BriefLock lock(&mu_);
  Block* const block = arena_.Find(AddressOf(address));
  if (block == nullptr) return NotLive(address);
  std::vector<void*>& users = recorded_[block];
  if (std::find(users.begin(), users.end(), stream) == users.end())
    users.push_back(stream);
  block->recorded = true;
  return absl::OkStatus();
}

absl::Status HeapCore::DetachStream(void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  base::MutexLock quiet(&quiet_mu_);
  FenceLedger::Fence fence;
  {
    BriefLock lock(&mu_);
    if (!captures_.empty()) {
      return absl::FailedPreconditionError(
          "gmb: a capture is under way: detach streams before or after it");
    }
    GMB_ASSIGN_OR_RETURN(fence, ledger_.MarkStream(stream));
  }
  GMB_RETURN_IF_ERROR(fence->Wait());
  BriefLock lock(&mu_);
  ledger_.Poll();
  ledger_.Forget(stream);
  arena_.SettleStream(stream);
  for (auto& [block, users] : recorded_) std::erase(users, stream);
  return absl::OkStatus();
}

HeapStatistics HeapCore::statistics() const {
  if (fork_guard_.InChild()) return {};
  BriefLock lock(&mu_);
  HeapStatistics statistics = counts_;
  const Arena::Sums& sums = arena_.sums();
  statistics.allocated_bytes = sums.live_bytes;
  statistics.held_bytes = sums.held_bytes;
  statistics.leased_bytes = sums.chunk_bytes;
  statistics.empty_bytes = sums.empty_bytes;
  statistics.largest_free_bytes = arena_.LargestFreeBytes();
  statistics.blocks = sums.live_blocks;
  statistics.leases = sums.chunks;
  return statistics;
}

absl::Status HeapCore::BeginCapture(PoolId pool, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  base::MutexLock quiet(&quiet_mu_);
  BriefLock lock(&mu_);
  if (captures_.empty()) ledger_.Poll();  // not in the capture itself
  // Blocks freed since the last capture are free for this one: the program
  // launches in order.
  const bool first = !Captures(pool);
  const Capture capture{.pool = pool, .number = last_capture_ + 1};
  if (!captures_.emplace(stream, capture).second) {
    return absl::FailedPreconditionError(
        "gmb: this stream's capture has begun already: end it first");
  }
  last_capture_ = capture.number;
  if (first) arena_.SettlePool(pool);
  TellEmpty();
  return absl::OkStatus();
}

absl::Status HeapCore::EndCapture(PoolId pool, void* stream) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  BriefLock lock(&mu_);
  const auto capture = captures_.find(stream);
  if (capture == captures_.end() || capture->second.pool != pool) {
    return absl::FailedPreconditionError(
        "gmb: this stream's capture has not begun with this pool");
  }
  captures_.erase(capture);
  if (!Captures(pool)) {
    ledger_.FreeDeferred(pool);
    arena_.SettlePool(pool);
  }
  if (captures_.empty()) CapturesEnded();
  return absl::OkStatus();
}

void HeapCore::CapturesEnded() {
  ledger_.RecordDeferred();
  TellAhead();
}

void HeapCore::ClosePool(PoolId pool) {
  BriefLock lock(&mu_);
  std::erase_if(captures_, [pool](const auto& entry) {
    return entry.second.pool == pool;
  });
  ledger_.FreeDeferred(pool);
  if (captures_.empty()) CapturesEnded();
  arena_.DissolvePool(pool);
  TellEmpty();
}

}  // namespace gmb::internal
