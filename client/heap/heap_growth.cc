// Where a heap's memory comes from when what is free at once does not do, and
// how it goes back.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/heap/heap_core.h"
#include "gmb/error.h"

namespace gmb::internal {
namespace {

// The broker has no room for so much, and may have for less.
bool IsShortage(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) return true;
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  return detail.has_value() && detail->reason == ErrorReason::kOvercommitted;
}

// How much to ask for if `bytes` may be had. A program that needs one large
// block mostly needs more like it. The rest of a chunk that is no whole number
// of them fits no block, and is missing where the quota ends.
uint64_t AskFor(uint64_t bytes, uint64_t need, uint64_t least_growth_bytes) {
  if (need > least_growth_bytes) bytes = bytes / need * need;
  return std::max(need, bytes);
}

// Few leases, and not much more than is needed. Powers of two: others that grow
// ask for the same, so that the broker has slabs of that size ready.
uint64_t StepOf(uint64_t chunk_bytes) {
  return std::bit_floor(chunk_bytes / 2);
}

// How much may be had after `asked` was refused: the bytes that fit, or half.
uint64_t Less(uint64_t asked, const absl::Status& refusal) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(refusal);
  const uint64_t deficit =
      std::min(asked, detail.has_value() ? detail->deficit_bytes : 0);
  return std::min(asked / 2, asked - deficit);
}

// The broker answers in order: once it has for the last one it has all of them
// back. A failure shows there, as unreturned bytes.
uint64_t GiveBack(std::vector<HeapChunks::Memory> memory) {
  uint64_t sum = 0;
  while (!memory.empty()) {
    sum += memory.back()->size_bytes();
    if (memory.size() == 1) memory.back()->Release().IgnoreError();
    memory.pop_back();
  }
  return sum;
}

}  // namespace

absl::StatusOr<void*> HeapCore::AllocateSlowly(uint64_t bytes, void* stream) {
  {
    BriefLock lock(&mu_);
    if (captures_.Of(stream).pool != kGeneral) {
      ++counts_.out_of_memory;
      return absl::ResourceExhaustedError(absl::StrCat(
          "gmb: the graph pool has no block of ", bytes,
          " bytes left, and does not grow in a capture: prepare more"));
    }
    if (!captures_.Any()) {
      ledger_.MarkStreams(stream);
      ledger_.Poll();
      if (void* const taken = Take(bytes, stream); taken != nullptr)
        return taken;
    }
  }
  base::MutexLock growing(&growth_mu_);
  {
    BriefLock lock(&mu_);
    // Another thread may have grown it meanwhile.
    if (void* const taken = Take(bytes, stream); taken != nullptr) return taken;
  }
  absl::StatusOr<void*> taken = GrowAndTake(bytes, stream);
  if (!taken.ok() && IsShortage(taken.status())) {
    absl::StatusOr<void*> own = TakeWhenQuiet(bytes, stream);
    if (!own.ok() || *own != nullptr) return own;
    absl::StatusOr<Memory> memory = Acquire(bytes, options_.wait);
    if (!memory.ok()) return OutOfMemory(memory.status(), bytes);
    std::vector<Memory> only;
    only.push_back(*std::move(memory));
    taken = AddAndTake(std::move(only), bytes, stream);
  }
  if (!taken.ok()) return OutOfMemory(taken.status(), bytes);
  return taken;
}

// From the broker, without waiting for others; more than is needed, if there is
// room for it.
absl::StatusOr<void*> HeapCore::GrowAndTake(uint64_t bytes, void* stream) {
  uint64_t most = 0;
  bool capturing = false;
  {
    BriefLock lock(&mu_);
    capturing = captures_.Any();
    most = std::clamp(StepOf(arena_.sums().chunk_bytes),
                      options_.least_growth_bytes, options_.most_growth_bytes);
  }
  size_t ahead = pace_.Next(Clock::now());
  // None of large ones; and during a capture it could not go back.
  if (capturing || bytes > options_.least_growth_bytes) ahead = 0;
  for (;;) {
    const uint64_t ask = AskFor(most, bytes, options_.least_growth_bytes);
    absl::StatusOr<void*> taken = GrowBy(ask, ahead, bytes, stream);
    if (taken.ok() || ask == bytes || !IsShortage(taken.status())) return taken;
    most = Less(ask, taken.status());
    ahead = 0;
  }
}

absl::StatusOr<void*> HeapCore::GrowBy(uint64_t chunk_bytes, size_t ahead,
                                       uint64_t bytes, void* stream) {
  CountQuestion();
  // Half of what was refused is any number.
  GMB_ASSIGN_OR_RETURN(
      std::vector<Memory> memory,
      source_->AcquireWithMore(Arena::RoundUp(chunk_bytes), ahead));
  if (memory.size() <= ahead) pace_.Refused(Clock::now());
  return AddAndTake(std::move(memory), bytes, stream);
}

void HeapCore::CountQuestion() {
  BriefLock lock(&mu_);
  ++counts_.questions;
}

absl::StatusOr<void*> HeapCore::AddAndTake(std::vector<Memory> memory,
                                           uint64_t bytes, void* stream) {
  BriefLock lock(&mu_);
  const bool several = memory.size() > 1;
  for (Memory& one : memory) {
    if (several) {
      chunks_.AddAhead(std::move(one));
    } else {
      chunks_.Add(std::move(one), kGeneral);
    }
    news_.Tell(arena_.sums().empty_bytes);
  }
  void* const taken = Take(bytes, stream);
  if (taken == nullptr) {
    return absl::ResourceExhaustedError(
        "gmb: the stream was begun for a graph pool meanwhile, and that has no "
        "such block left");
  }
  chunks_.KeepUsed();  // the chunk that it is in was needed
  return taken;
}

absl::StatusOr<HeapCore::Memory> HeapCore::Acquire(uint64_t bytes,
                                                   absl::Duration wait) {
  SetWaiting(wait > absl::ZeroDuration());
  const absl::Cleanup waited = [this] { SetWaiting(false); };
  CountQuestion();
  return source_->Acquire(Arena::RoundUp(bytes), wait);
}

void HeapCore::SetWaiting(bool waiting) {
  BriefLock lock(&mu_);
  waiting_ = waiting;
  if (!waiting && chunks_.HasAhead()) news_.TellAgain();
}

// A block of the heap's own memory, once its streams have come to an end; null
// if none fits. Empty chunks, too small as they are, then go back to make room.
absl::StatusOr<void*> HeapCore::TakeWhenQuiet(uint64_t bytes, void* stream) {
  base::MutexLock quiet(&quiet_mu_);
  std::vector<FenceLedger::Fence> open;
  {
    BriefLock lock(&mu_);
    if (captures_.Any()) return nullptr;
    ledger_.RecordDeferred();
    ledger_.MarkStreams(stream);
    open = ledger_.Open();
  }
  for (const FenceLedger::Fence& fence : open) {
    GMB_RETURN_IF_ERROR(fence->Wait());
  }
  {
    BriefLock lock(&mu_);
    ledger_.Poll();
    if (void* const taken = Take(bytes, stream); taken != nullptr) return taken;
  }
  ReleaseEmpty(Arena::kMostBytes);
  return nullptr;
}

uint64_t HeapCore::Trim(uint64_t bytes) {
  if (fork_guard_.InChild()) return 0;
  base::MutexLock quiet(&quiet_mu_);
  {
    BriefLock lock(&mu_);
    if (captures_.Any() || waiting_) return 0;
    // Blocks that wait for other streams may be all that a chunk has.
    ledger_.Poll();
  }
  return ReleaseEmpty(bytes);
}

uint64_t HeapCore::ReleaseEmpty(uint64_t bytes) {
  std::vector<Memory> empty;
  {
    BriefLock lock(&mu_);
    empty = chunks_.TakeEmpty(bytes);
    news_.Tell(arena_.sums().empty_bytes);
  }
  return GiveBack(std::move(empty));
}

void HeapCore::ReturnAhead() {
  base::MutexLock quiet(&quiet_mu_);
  std::vector<Memory> unused;
  {
    BriefLock lock(&mu_);
    if (captures_.Any() || waiting_) return;
    unused = chunks_.TakeUnusedAhead();
    news_.Tell(arena_.sums().empty_bytes);
  }
  // Nobody waits for the broker's answer here: it may be away, and captures that
  // begin wait for this.
  unused.clear();
}

absl::Status HeapCore::Prepare(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (bytes == 0) return absl::OkStatus();
  const uint64_t rounded = Arena::RoundUp(std::min(bytes, Arena::kMostBytes));
  base::MutexLock growing(&growth_mu_);
  {
    BriefLock lock(&mu_);
    if (arena_.HasForAnyone(rounded)) {
      chunks_.KeepAll();  // it may be there: it is wanted now
      return absl::OkStatus();
    }
  }
  absl::StatusOr<Memory> memory = Acquire(rounded, options_.wait);
  if (!memory.ok()) return OutOfMemory(memory.status(), rounded);
  BriefLock lock(&mu_);
  chunks_.Add(*std::move(memory), kGeneral);
  news_.Tell(arena_.sums().empty_bytes);
  return absl::OkStatus();
}

absl::StatusOr<PoolId> HeapCore::OpenPool(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(fork_guard_.Check());
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        "gmb: a graph pool of 0 bytes serves nothing: say how many the capture "
        "allocates");
  }
  const uint64_t rounded = Arena::RoundUp(std::min(bytes, Arena::kMostBytes));
  base::MutexLock growing(&growth_mu_);
  absl::StatusOr<Memory> memory = Acquire(rounded, options_.wait);
  if (!memory.ok()) return OutOfMemory(memory.status(), rounded);
  BriefLock lock(&mu_);
  chunks_.Add(*std::move(memory), last_pool_ + 1);
  news_.Tell(arena_.sums().empty_bytes);
  return ++last_pool_;
}

// The refusal, with its reason, and what the heap has.
absl::Status HeapCore::OutOfMemory(const absl::Status& why, uint64_t bytes) {
  BriefLock lock(&mu_);
  ++counts_.out_of_memory;
  const Arena::Sums& sums = arena_.sums();
  absl::Status status(
      why.code(),
      absl::StrCat("gmb: the heap has no free block of ", bytes,
                   " bytes and could not grow (leased ", sums.chunk_bytes,
                   ", allocated ", sums.live_bytes, ", largest free block ",
                   arena_.shares().LargestFreeBytes(), "): ", why.message()));
  why.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    status.SetPayload(type, payload);
  });
  return status;
}

}  // namespace gmb::internal
