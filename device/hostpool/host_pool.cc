// The host pool: memory for the contents of evicted leases.
#include "device/hostpool/host_pool.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::device {

absl::StatusOr<std::unique_ptr<HostPool>> HostPool::Create(
    Options options, std::unique_ptr<PageLocker> locker) {
  if (options.chunk_bytes == 0 ||
      options.chunk_bytes % kHostPoolGranularityBytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks of a host pool must be a positive multiple of 2 "
                     "MiB: bytes=",
                     options.chunk_bytes));
  }
  GMB_ASSIGN_OR_RETURN(
      PoolMapping mapping,
      options.kept.valid()
          ? PoolMapping::Adopt(std::move(options.kept), options.bytes)
          : PoolMapping::Create(options.bytes, options.on_demand
                                                   ? PageSource::kOrdinary
                                                   : PageSource::kAny));
  return std::unique_ptr<HostPool>(
      new HostPool(std::move(options), std::move(mapping), std::move(locker)));
}

HostPool::HostPool(Options options, PoolMapping mapping,
                   std::unique_ptr<PageLocker> locker)
    : options_(std::move(options)),
      mapping_(std::move(mapping)),
      locker_(std::move(locker)),
      chunks_(
          (options_.bytes + options_.chunk_bytes - 1) / options_.chunk_bytes,
          State::kWaiting),
      end_(options_.on_demand ? 0 : chunks_.size()) {
  progress_.bytes = options_.bytes;
  const unsigned quarter = std::thread::hardware_concurrency() / 4;
  const size_t wanted =
      options_.threads != 0 ? options_.threads : std::clamp(quarter, 1U, 8U);
  for (size_t i = 0; i < std::min(wanted, chunks_.size()); ++i) {
    try {
      threads_.emplace_back([this] { PrepareChunks(); });
    } catch (const std::system_error&) {
      if (i == 0) throw;
      break;  // it takes longer with fewer
    }
  }
}

HostPool::~HostPool() {
  {
    const base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i] == State::kLocked)
      locker_->Unlock(At(ChunkExtent(i).offset));
  }
}

HostExtent HostPool::ChunkExtent(size_t chunk) const {
  const uint64_t offset = chunk * options_.chunk_bytes;
  return {offset, std::min(options_.chunk_bytes, options_.bytes - offset)};
}

size_t HostPool::NextChunk() {
  while (!wanted_.empty()) {
    const size_t chunk = wanted_.front();
    wanted_.pop_front();
    if (chunks_[chunk] == State::kWaiting) return chunk;
  }
  while (next_ < end_ && chunks_[next_] != State::kWaiting) ++next_;
  return next_ < end_ ? next_ : chunks_.size();
}

std::optional<size_t> HostPool::TakeChunk() {
  const base::MutexLock lock(&mu_);
  while (!stopping_) {
    const size_t chunk = NextChunk();
    if (chunk < chunks_.size()) {
      chunks_[chunk] = State::kInHand;
      return chunk;
    }
    if (!options_.on_demand) break;
    changed_.Wait(&mu_);
  }
  return std::nullopt;
}

absl::Status HostPool::Admit(const HostExtent& chunk) {
  const base::MutexLock lock(&admission_mu_);
  const absl::StatusOr<AvailableMemory> available = options_.available();
  if (!available.ok()) return available.status();
  if (available->bytes >= 2 * chunk.bytes + admitted_bytes_) {
    admitted_bytes_ += chunk.bytes;
    return absl::OkStatus();
  }
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return absl::ResourceExhaustedError(absl::StrCat(
      "too little memory to spare for more of the host pool now: ",
      available->bytes / kMiB, " MiB are available (", available->source,
      "), a step takes ", chunk.bytes / kMiB,
      " MiB and leaves as much: free memory or raise that limit, or set a "
      "smaller host_pool"));
}

void HostPool::Leave(const HostExtent& chunk) {
  const base::MutexLock lock(&admission_mu_);
  admitted_bytes_ -= chunk.bytes;
}

absl::Status HostPool::Populate(const HostExtent& chunk,
                                absl::Status* declined) {
  using InUse = PoolMapping::InUse;
  const InUse in_use =
      options_.on_demand ? mapping_.InUseOf(chunk) : InUse::kAll;
  // Memory that is in use already has to be reached, and takes nothing more.
  if (in_use == InUse::kAll) return mapping_.Populate(chunk);
  *declined = Admit(chunk);
  if (!declined->ok()) return absl::OkStatus();
  *declined = mapping_.Populate(chunk);
  // Tried again when it is next wanted. Until then others have the memory.
  if (!declined->ok() && in_use == InUse::kNone) mapping_.GiveBack(chunk);
  Leave(chunk);
  return absl::OkStatus();
}

void HostPool::PrepareChunks() {
  while (true) {
    const std::optional<size_t> taken = TakeChunk();
    if (!taken.has_value()) return;
    const size_t chunk = *taken;
    const HostExtent extent = ChunkExtent(chunk);
    absl::Status declined;
    const absl::Status populated = Populate(extent, &declined);
    if (!declined.ok()) {
      Decline(chunk, declined);
      continue;
    }
    absl::Status locked;
    if (populated.ok() && locker_ != nullptr) locked = Lock(extent);
    Record(chunk, populated, locked);
  }
}

absl::Status HostPool::Lock(const HostExtent& extent) {
  {
    const base::MutexLock lock(&mu_);
    lock_progress_.begun_bytes += extent.bytes;
  }
  const absl::Status locked = locker_->Lock(At(extent.offset), extent.bytes);
  const base::MutexLock lock(&mu_);
  lock_progress_.ended_bytes += extent.bytes;
  return locked;
}

void HostPool::Decline(size_t chunk, const absl::Status& why) {
  const base::MutexLock lock(&mu_);
  chunks_[chunk] = State::kDeclined;
  declined_ = std::string(why.message());
  changed_.NotifyAll();
}

void HostPool::Record(size_t chunk, const absl::Status& populated,
                      const absl::Status& locked) {
  const uint64_t bytes = ChunkExtent(chunk).bytes;
  const base::MutexLock lock(&mu_);
  if (!populated.ok()) {
    chunks_[chunk] = State::kFailed;
    progress_.failed_bytes += bytes;
  } else {
    const bool is_locked = locker_ != nullptr && locked.ok();
    chunks_[chunk] = is_locked ? State::kLocked : State::kPrepared;
    progress_.prepared_bytes += bytes;
    refused_.clear();
    if (is_locked) progress_.locked_bytes += bytes;
  }
  const absl::Status& problem = populated.ok() ? locked : populated;
  if (!problem.ok() && progress_.problem.empty()) {
    progress_.problem = std::string(problem.message());
  }
  changed_.NotifyAll();
}

bool HostPool::IsDone() const {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i] == State::kInHand) return false;
    if (chunks_[i] == State::kWaiting && i < end_) return false;
  }
  return true;
}

HostPool::Progress HostPool::progress() const {
  const base::MutexLock lock(&mu_);
  Progress progress = progress_;
  progress.done = IsDone();
  if (progress.problem.empty()) progress.problem = refused_;
  return progress;
}

HostPool::LockProgress HostPool::lock_progress() const {
  const base::MutexLock lock(&mu_);
  return lock_progress_;
}

bool HostPool::Contains(const HostExtent& piece) const {
  return piece.bytes <= size_bytes() &&
         piece.offset <= size_bytes() - piece.bytes;
}

HostPool::Chunks HostPool::ChunksOf(const HostExtent& piece) const {
  return {piece.offset / options_.chunk_bytes,
          (piece.offset + piece.bytes - 1) / options_.chunk_bytes};
}

void HostPool::Want(const HostExtent& piece) {
  if (piece.bytes == 0 || !Contains(piece)) return;
  const Chunks chunks = ChunksOf(piece);
  const base::MutexLock lock(&mu_);
  bool any = false;
  for (size_t i = chunks.first; i <= chunks.last; ++i) {
    if (chunks_[i] == State::kDeclined) chunks_[i] = State::kWaiting;
    if (chunks_[i] != State::kWaiting) continue;
    wanted_.push_back(i);
    any = true;
  }
  const size_t ahead = options_.ahead_bytes / options_.chunk_bytes;
  const size_t end = std::min(chunks_.size(), chunks.last + 1 + ahead);
  if (end > end_) {
    end_ = end;
    any = true;
  }
  if (any) changed_.NotifyAll();
}

absl::Status HostPool::AwaitPrepared(const HostExtent& piece) {
  if (!Contains(piece)) {
    return absl::InvalidArgumentError(
        absl::StrCat("beyond the host pool: offset=", piece.offset,
                     " bytes=", piece.bytes, " pool=", size_bytes()));
  }
  if (piece.bytes == 0) return absl::OkStatus();
  Want(piece);
  const Chunks chunks = ChunksOf(piece);
  const base::MutexLock lock(&mu_);
  for (size_t i = chunks.first; i <= chunks.last; ++i) {
    while (chunks_[i] == State::kWaiting || chunks_[i] == State::kInHand) {
      changed_.Wait(&mu_);
    }
    if (chunks_[i] == State::kDeclined) {
      refused_ = declined_;
      return absl::ResourceExhaustedError(refused_);
    }
    if (chunks_[i] == State::kFailed) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the machine has no memory for this part of the host pool: make the "
          "host pool smaller: ",
          progress_.problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::device
