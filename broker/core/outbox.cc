// A session's queue of slabs and messages, in order: a lease's handles go out
// before the Grant that announces it.
#include "broker/core/outbox.h"

#include <algorithm>
#include <utility>

namespace gmb::broker {

void Outbox::ExpectMoves(size_t leases) {
  base::MutexLock lock(&mu_);
  max_items_ = kMaxItems + kItemsAMove * leases;
}

void Outbox::Push(SlabFrame frame) {
  base::MutexLock lock(&mu_);
  if (progress_.closed) return;
  progress_.overflowed = progress_.overflowed || items_.size() >= max_items_;
  if (!progress_.overflowed) items_.emplace_back(std::move(frame));
}

void Outbox::Push(v1::BrokerMessage message) {
  base::MutexLock lock(&mu_);
  if (progress_.closed) return;
  progress_.overflowed = progress_.overflowed || items_.size() >= max_items_;
  if (progress_.overflowed) return;
  items_.emplace_back(std::move(message));
  ++messages_;
}

bool Outbox::overflowed() const {
  base::MutexLock lock(&mu_);
  return progress_.overflowed;
}

// One thread pumps at a time; another that comes meanwhile (also a write that
// completes inside StartWrite, on the same stack) leaves it to that one, which
// looks again after each step.
void Outbox::Pump() {
  {
    base::MutexLock lock(&mu_);
    if (progress_.pumping) return;
    progress_.pumping = true;
  }
  while (true) {
    std::optional<Work> work;
    std::shared_ptr<StreamSink> written;
    {
      base::MutexLock lock(&mu_);
      work = NextLocked();
      if (!work.has_value()) {
        progress_.pumping = false;
        written = WrittenLocked();
      }
    }
    if (!work.has_value()) {
      if (written != nullptr) written->Close(absl::OkStatus());
      return;
    }
    Carry(*std::move(work));
  }
}

std::optional<Outbox::Work> Outbox::NextLocked() {
  if (progress_.closed || items_.empty()) return std::nullopt;
  Work work;
  if (std::holds_alternative<SlabFrame>(items_.front())) {
    if (sender_ == nullptr || progress_.socket_full ||
        acks_.awaited.has_value())
      return std::nullopt;
    work.sender = sender_;
    acks_.awaited = std::get<SlabFrame>(items_.front()).frame_id;
    if (!acks_.waiting_since.has_value())
      acks_.waiting_since = std::chrono::steady_clock::now();
    progress_.socket_full =
        true;  // until sent; OnSocketWritable may come before Carry is done
  } else {
    if (sink_ == nullptr || progress_.writing) return std::nullopt;
    work.sink = sink_;
    progress_.writing = true;
    --messages_;
  }
  work.item = std::move(items_.front());
  items_.pop_front();
  return work;
}

std::shared_ptr<StreamSink> Outbox::WrittenLocked() {
  if (!progress_.asked_all || progress_.writing || messages_ > 0)
    return nullptr;
  progress_.asked_all = false;
  return sink_;
}

void Outbox::Carry(Work work) {
  if (work.sink != nullptr) {
    if (!work.sink->Write(std::get<v1::BrokerMessage>(std::move(work.item)))) {
      (void)DetachStream(work.sink.get());
    }
    return;
  }
  SlabFrame& frame = std::get<SlabFrame>(work.item);
  std::vector<int> fds;
  fds.reserve(frame.handles.size());
  for (const SharedHandle& handle : frame.handles) {
    if (const auto* fd = std::get_if<base::UniqueFd>(handle.get()))
      fds.push_back(fd->get());
  }
  const absl::StatusOr<bool> sent = work.sender->TrySend(frame.bytes, fds);
  base::MutexLock lock(&mu_);
  if (progress_.closed) return;
  if (sent.ok() && *sent) {
    progress_.socket_full = false;
    return;
  }
  acks_.awaited.reset();
  if (!sent.ok()) {
    sender_ = nullptr;  // the handle server ends the session
    return;
  }
  items_.push_front(std::move(work.item));
}

void Outbox::AttachSocket(std::shared_ptr<FrameSender> sender) {
  {
    base::MutexLock lock(&mu_);
    if (progress_.closed) return;
    sender_ = std::move(sender);
  }
  Pump();
}

void Outbox::OnSocketWritable() {
  {
    base::MutexLock lock(&mu_);
    progress_.socket_full = false;
  }
  Pump();
}

void Outbox::IgnoreAcksBelow(uint64_t id) {
  base::MutexLock lock(&mu_);
  acks_.first = id;
  acks_.old = id >> 32;
}

bool Outbox::TakeOldAck(uint64_t frame_id) {
  base::MutexLock lock(&mu_);
  if (frame_id >= acks_.first || acks_.old == 0) return false;
  --acks_.old;
  return true;
}

bool Outbox::OnAck(uint64_t frame_id) {
  {
    base::MutexLock lock(&mu_);
    if (acks_.awaited != frame_id) return false;
    acks_.awaited.reset();
    acks_.waiting_since.reset();
  }
  Pump();
  return true;
}

std::optional<std::chrono::steady_clock::time_point>
Outbox::WaitingForPeerSince() const {
  base::MutexLock lock(&mu_);
  return acks_.waiting_since;
}

void Outbox::DropMessagesLocked() {
  items_.erase(
      std::remove_if(items_.begin(), items_.end(),
                     [](const Item& item) {
                       return std::holds_alternative<v1::BrokerMessage>(item);
                     }),
      items_.end());
  messages_ = 0;
}

void Outbox::AttachStream(std::shared_ptr<StreamSink> sink) {
  std::shared_ptr<StreamSink> replaced;
  bool closed = false;
  {
    base::MutexLock lock(&mu_);
    closed = progress_.closed;
    if (!closed) {
      replaced = std::exchange(sink_, sink);
      progress_.writing = false;
      progress_.asked_all = false;
      DropMessagesLocked();
    }
  }
  if (closed) {
    sink->Close(
        absl::UnauthenticatedError("the session is over: connect again"));
    return;
  }
  if (replaced != nullptr) {
    replaced->Close(
        absl::AbortedError("replaced by a newer stream of the same session"));
  }
  Pump();
}

bool Outbox::DetachStream(const StreamSink* sink) {
  base::MutexLock lock(&mu_);
  if (sink_.get() != sink) return false;
  sink_ = nullptr;
  progress_.writing = false;
  progress_.asked_all = false;
  DropMessagesLocked();
  return true;
}

bool Outbox::streaming() const {
  base::MutexLock lock(&mu_);
  return sink_ != nullptr;
}

bool Outbox::crowded() const {
  base::MutexLock lock(&mu_);
  return messages_ > kManyMessages;
}

void Outbox::OnWriteDone(const StreamSink* sink) {
  {
    base::MutexLock lock(&mu_);
    if (sink_.get() != sink) return;
    progress_.writing = false;
  }
  Pump();
}

void Outbox::CloseOnceWritten(const StreamSink* sink) {
  {
    base::MutexLock lock(&mu_);
    if (sink_.get() != sink) return;
    progress_.asked_all = true;
  }
  Pump();
}

void Outbox::Close(const absl::Status& status) {
  std::shared_ptr<StreamSink> sink;
  std::shared_ptr<FrameSender> sender;
  std::deque<Item> dropped;  // its fds close after the lock is given up
  {
    base::MutexLock lock(&mu_);
    progress_.closed = true;
    sink = std::move(sink_);
    sender = std::move(sender_);
    dropped = std::move(items_);
    items_.clear();
    messages_ = 0;
    acks_.waiting_since.reset();
  }
  if (sink != nullptr) sink->Close(status);
  if (sender != nullptr) sender->Hangup();
}

}  // namespace gmb::broker
