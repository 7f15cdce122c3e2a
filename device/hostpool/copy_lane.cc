// Eviction and restore: one direction of a copier, on its thread.
#include "device/hostpool/copy_lane.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device/copy_in_hand.h"

namespace gmb::device {
namespace {

absl::Status CheckRoom(const CopyJob& job) {
  uint64_t bytes = 0;
  for (const HostExtent& extent : job.room) {
    if (extent.bytes == 0 || extent.bytes > job.slab_bytes - bytes) {
      bytes = UINT64_MAX;
      break;
    }
    bytes += extent.bytes;
  }
  if (bytes == job.slab_bytes && bytes != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "room in the host pool is not of the slab's size: slab=", job.slab_bytes,
      " pieces of room=", job.room.size()));
}

}  // namespace

CopyLane::CopyLane(HostPool* pool, std::unique_ptr<CopyEngine> engine,
                   const CopyPacing& pacing)
    : pool_(pool), engine_(std::move(engine)), pacing_(pacing) {
  thread_ = std::thread([this] { Run(); });
}

void CopyLane::Stop() {
  {
    const base::MutexLock lock(&mu_);
    stopping_ = true;
    for (const auto& task : waiting_) task->cancelled = true;
    for (const auto& task : active_) task->cancelled = true;
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

CopyLane::~CopyLane() {
  Stop();
  // Pushed after that.
  for (const auto& task : waiting_) {
    task->job.done(absl::CancelledError("the copier has stopped"));
  }
}

void CopyLane::Push(CopyJob job) {
  auto task = std::make_unique<Task>();
  task->job = std::move(job);
  const base::MutexLock lock(&mu_);
  task->cancelled = stopping_;
  waiting_.push_back(std::move(task));
}

void CopyLane::Cancel(uint64_t group) {
  const base::MutexLock lock(&mu_);
  for (const auto* tasks : {&waiting_, &active_}) {
    for (const auto& task : *tasks) {
      if (task->job.group == group) task->cancelled = true;
    }
  }
}

void CopyLane::Run() {
  Task* beginning = nullptr;  // has pieces that are not begun
  while (true) {
    if (beginning == nullptr) beginning = NextTask(flight_.empty());
    if (beginning == nullptr && flight_.empty()) return;
    if (beginning != nullptr && flight_bytes_ < pacing_.window_bytes) {
      if (!BeginPiece(beginning)) beginning = nullptr;
    } else {
      RetireOldest();
    }
  }
}

CopyLane::Task* CopyLane::NextTask(bool wait) {
  const base::MutexLock lock(&mu_);
  while (wait && !stopping_ && waiting_.empty()) wake_.Wait(&mu_);
  if (waiting_.empty()) return nullptr;
  active_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return active_.back().get();
}

bool CopyLane::BeginPiece(Task* task) {
  uint64_t bytes = 0;
  if (task->cancelled) {
    task->status.Update(absl::CancelledError("the copy was cancelled"));
  }
  if (task->status.ok()) task->status = BeginCopy(task, &bytes);
  const bool last =
      !task->status.ok() || task->begun_bytes == task->job.slab_bytes;
  flight_.push_back({task, bytes, last});
  flight_bytes_ += bytes;
  return !last;
}

absl::Status CopyLane::BeginCopy(Task* task, uint64_t* bytes) {
  CopyJob& job = task->job;
  if (task->mapped == nullptr) {
    GMB_RETURN_IF_ERROR(CheckRoom(job));
    if (job.slab == nullptr)
      return absl::InternalError("the slab has no handle");
    GMB_ASSIGN_OR_RETURN(
        void* mapped,
        engine_->Map(*std::exchange(job.slab, nullptr), job.slab_bytes));
    task->mapped = static_cast<char*>(mapped);
  }
  const HostExtent& extent = job.room[task->extent];
  const uint64_t offset = extent.offset + task->extent_offset;
  const uint64_t left_in_chunk =
      pool_->chunk_bytes() - offset % pool_->chunk_bytes();
  const uint64_t piece = std::min(
      {pacing_.piece_bytes, extent.bytes - task->extent_offset, left_in_chunk});
  GMB_RETURN_IF_ERROR(pool_->AwaitPrepared({offset, piece}));
  {
    const CopyInHand in_hand(job.owner);
    GMB_RETURN_IF_ERROR(engine_->Begin(job.direction,
                                       task->mapped + task->begun_bytes,
                                       pool_->At(offset), piece));
  }
  *bytes = piece;
  task->begun_bytes += piece;
  task->extent_offset += piece;
  if (task->extent_offset == extent.bytes) {
    ++task->extent;
    task->extent_offset = 0;
  }
  return absl::OkStatus();
}

void CopyLane::RetireOldest() {
  const Piece piece = flight_.front();
  flight_.pop_front();
  if (piece.bytes != 0) {
    piece.task->status.Update(engine_->FinishOldest());
    flight_bytes_ -= piece.bytes;
  }
  if (piece.last) End(piece.task);
}

void CopyLane::End(Task* task) {
  if (task->mapped != nullptr) {
    task->status.Update(engine_->Unmap(task->mapped, task->job.slab_bytes));
  }
  task->job.slab.reset();  // where it was never mapped
  std::unique_ptr<Task> ended;
  {
    const base::MutexLock lock(&mu_);
    ended = std::move(active_.front());  // tasks end in order
    active_.pop_front();
  }
  ended->job.done(std::move(ended->status));
}

}  // namespace gmb::device
