// The heap's frees: blocks that wait until streams have got there.
#include "client/heap/fence_ledger.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace gmb::internal {
namespace {

// A fence that cannot be asked is not reached.
bool Reached(const FenceLedger::Fence& fence) {
  return fence->Reached().value_or(false);
}

}  // namespace

absl::StatusOr<FenceLedger::Fence> FenceLedger::MarkStream(void* stream) {
  GMB_ASSIGN_OR_RETURN(std::unique_ptr<device::StreamFence> fence,
                       fences_->Record(stream));
  marks_.push_back({stream, 0, std::move(fence)});
  marks_.back().mark = arena_->Mark(stream);
  return marks_.back().fence;
}

void FenceLedger::MarkStreams(std::optional<void*> except) {
  for (void* stream : arena_->shares().StreamsToMark(except)) {
    MarkStream(stream).status().IgnoreError();
  }
}

absl::Status FenceLedger::RecordUsers(Held* held) {
  held->fences.reserve(held->fences.size() + held->unrecorded.size());
  while (!held->unrecorded.empty()) {
    GMB_ASSIGN_OR_RETURN(std::unique_ptr<device::StreamFence> fence,
                         fences_->Record(held->unrecorded.back()));
    held->fences.emplace_back(std::move(fence));
    held->unrecorded.pop_back();
  }
  return absl::OkStatus();
}

absl::Status FenceLedger::Hold(Block* block, std::optional<void*> stream,
                               std::vector<void*> users) {
  HoldDeferred(block, stream, std::move(users), false);
  return RecordUsers(&held_.back());
}

void FenceLedger::HoldDeferred(Block* block, std::optional<void*> stream,
                               std::vector<void*> users, bool in_capture) {
  held_.push_back({block, stream, std::move(users), {}, in_capture});
  arena_->Hold(block);
}

void FenceLedger::RecordDeferred() {
  for (Held& held : held_) RecordUsers(&held).IgnoreError();
}

void FenceLedger::FreeDeferred(PoolId pool) {
  for (auto held = held_.begin(); held != held_.end();) {
    const auto it = held++;
    if (!it->in_capture || it->block->chunk->pool != pool) continue;
    it->in_capture = false;
    if (!it->unrecorded.empty()) continue;
    Free(*it);
    held_.erase(it);
  }
}

void FenceLedger::Free(const Held& held) {
  if (held.stream.has_value()) {
    arena_->Free(held.block, *held.stream);
  } else {
    arena_->FreeForAnyone(held.block);
  }
}

void FenceLedger::Forget(void* stream) {
  for (Held& held : held_) {
    std::erase(held.unrecorded, stream);
    if (held.stream == stream) held.stream.reset();
  }
}

bool FenceLedger::HasMarkOn(void* stream) const {
  return std::any_of(
      marks_.begin(), marks_.end(),
      [stream](const MarkInStream& mark) { return mark.stream == stream; });
}

void FenceLedger::Poll() {
  marks_.remove_if([&](const MarkInStream& mark) {
    if (!Reached(mark.fence)) return false;
    arena_->Reached(mark.stream, mark.mark);
    return true;
  });
  for (auto held = held_.begin(); held != held_.end();) {
    const auto it = held++;
    std::erase_if(it->fences, Reached);
    if (!it->unrecorded.empty() || !it->fences.empty()) continue;
    Free(*it);
    held_.erase(it);
  }
}

std::vector<FenceLedger::Fence> FenceLedger::Open() const {
  std::vector<Fence> open;
  for (const MarkInStream& mark : marks_) open.push_back(mark.fence);
  for (const Held& held : held_) {
    open.insert(open.end(), held.fences.begin(), held.fences.end());
  }
  return open;
}

}  // namespace gmb::internal
