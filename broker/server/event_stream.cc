// `gmb watch`: one stream of events.
#include "broker/server/event_stream.h"

#include <utility>

namespace gmb::broker {

EventStream::EventStream(EventBus* bus, const v1::WatchRequest& wanted,
                         GrpcConnections::Proof proof)
    : bus_(bus),
      tenant_(wanted.tenant()),
      kinds_(wanted.kinds().begin(), wanted.kinds().end()),
      proof_(std::move(proof)) {
  StartSendInitialMetadata();  // tells the reader that it now sees everything
  subscription_ =
      bus_->Subscribe([this](const v1::Event& event) { OnEvent(event); });
}

bool EventStream::Wants(const v1::Event& event) const {
  return (tenant_.empty() || event.tenant() == tenant_) &&
         (kinds_.empty() || kinds_.contains(event.kind()));
}

void EventStream::OnEvent(const v1::Event& event) {
  {
    base::MutexLock lock(&mu_);
    if (ending_) return;
    if (!Wants(event)) {
      missed_ += event.missed();
      return;
    }
    if (queue_.size() >= kMaxQueued) {
      missed_ += 1 + event.missed();
      return;
    }
    queue_.push_back(event);
    queue_.back().set_missed(event.missed() + std::exchange(missed_, 0));
  }
  WriteNext();
}

void EventStream::WriteNext() {
  {
    base::MutexLock lock(&mu_);
    if (busy_ || ending_ || queue_.empty()) return;
    current_ = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
  }
  StartWrite(&current_);  // without the lock: it may complete at once
}

void EventStream::OnWriteDone(bool ok) {
  {
    base::MutexLock lock(&mu_);
    busy_ = false;
    if (!ok) ending_ = true;
  }
  End();
  WriteNext();
}

void EventStream::OnCancel() {
  {
    base::MutexLock lock(&mu_);
    ending_ = true;
  }
  End();
}

// Finishes once, when the end has come and no write is in flight.
void EventStream::End() {
  {
    base::MutexLock lock(&mu_);
    if (!ending_ || busy_ || finished_) return;
    finished_ = true;
  }
  Finish(grpc::Status::OK);
}

void EventStream::OnDone() {
  bus_->Unsubscribe(subscription_);
  delete this;
}

}  // namespace gmb::broker
