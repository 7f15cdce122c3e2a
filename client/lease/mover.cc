// A lease leaves and comes back: the thread that unmaps and maps it.
#include "client/lease/mover.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "base/status_macros.h"
#include "client/no_throw.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

// The broker takes messages of 8 KiB at most.
constexpr size_t kLongestMessage = 1024;

v1::Error ShortError(const absl::Status& status) {
  v1::Error error = proto::ToWireError(status);
  if (error.message().size() > kLongestMessage) {
    // A cut may go through a character.
    error.set_message(absl::CHexEscape(
        absl::string_view(error.message()).substr(0, kLongestMessage)));
  }
  return error;
}

}  // namespace

Mover::~Mover() {
  std::thread thread;
  {
    base::MutexLock lock(&mu_);
    stop_ = true;
    thread.swap(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

void Mover::Add(uint64_t lease_id, std::shared_ptr<MappedLease> lease) {
  base::MutexLock lock(&mu_);
  table_.Add(lease_id, std::move(lease));
  if (table_.has_task()) WakeThread();
}

void Mover::Remove(uint64_t lease_id) {
  base::MutexLock lock(&mu_);
  table_.Remove(lease_id);
}

std::vector<std::shared_ptr<MappedLease>> Mover::Leases() {
  base::MutexLock lock(&mu_);
  return table_.Leases();
}

absl::Status Mover::OnEvict(const v1::Evict& evict) {
  Repeated repeated = std::nullopt;
  {
    base::MutexLock lock(&mu_);
    if (over_) return absl::OkStatus();
    repeated = table_.OnEvict(evict);
    if (table_.has_task()) WakeThread();
  }
  return Answer(std::move(repeated));
}

void Mover::OnReleased(uint64_t lease_id) {
  base::MutexLock lock(&mu_);
  table_.OnReleased(lease_id);
}

absl::Status Mover::OnMap(const v1::Map& map) {
  Repeated repeated = std::nullopt;
  {
    base::MutexLock lock(&mu_);
    if (over_) return absl::OkStatus();
    repeated = table_.OnMap(map);
    if (table_.has_task()) WakeThread();
  }
  return Answer(std::move(repeated));
}

absl::Status Mover::OnSlabs(const v1::Slabs& frame,
                            std::vector<base::UniqueFd> fds) {
  base::MutexLock lock(&mu_);
  if (over_) return absl::OkStatus();
  absl::Status taken = table_.OnSlabs(frame, std::move(fds));
  if (table_.has_task()) WakeThread();
  return taken;
}

void Mover::Clear() {
  base::MutexLock lock(&mu_);
  over_ = true;
  table_.Clear();
}

absl::Status Mover::Answer(Repeated repeated) {
  if (!repeated.ok()) return repeated.status();
  if (repeated->has_value()) owner_.SendMoved(**std::move(repeated));
  return absl::OkStatus();
}

void Mover::WakeThread() {
  if (!thread_.joinable() && !stop_) thread_ = std::thread([this] { Run(); });
  changed_.NotifyAll();
}

void Mover::Run() {
  for (;;) {
    std::optional<MoveTable::Task> task;
    {
      base::MutexLock lock(&mu_);
      while (!stop_ && !(task = table_.TakeTask()).has_value()) {
        changed_.Wait(&mu_);
      }
      if (stop_) return;
    }
    const absl::Status done = NoThrow([&] {
      DoTask(*std::move(task));
      return absl::OkStatus();
    });
    if (!done.ok()) owner_.MoverFailed(done);
  }
}

void Mover::DoTask(MoveTable::Task task) {
  v1::ClientMessage answer = CarryOut(task);
  {
    base::MutexLock lock(&mu_);
    if (over_ || !table_.Done(task, answer)) return;
  }
  owner_.SendMoved(std::move(answer));
}

void Mover::SetWitness(Witness witness) {
  base::MutexLock lock(&witness_mu_);
  witness_ = std::move(witness);
}

absl::Status Mover::AskWitness() {
  base::MutexLock lock(&witness_mu_);
  return witness_ == nullptr ? absl::OkStatus() : witness_();
}

v1::ClientMessage Mover::CarryOut(MoveTable::Task& task) {
  const absl::Status status = NoThrow([&] {
    if (task.is_map)
      return task.lease->Map(std::move(task.handles), task.slab_bytes);
    GMB_RETURN_IF_ERROR(AskWitness());
    return task.lease->Evict();
  });
  v1::ClientMessage message;
  if (task.is_map) {
    message.mutable_mapped()->set_lease_id(task.lease_id);
    message.mutable_mapped()->set_move(task.move);
    if (!status.ok()) {
      *message.mutable_mapped()->mutable_error() = ShortError(status);
    }
  } else {
    message.mutable_unmapped()->set_lease_id(task.lease_id);
    message.mutable_unmapped()->set_move(task.move);
    if (!status.ok()) {
      *message.mutable_unmapped()->mutable_error() = ShortError(status);
    }
  }
  return message;
}

}  // namespace gmb::internal
