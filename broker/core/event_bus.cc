#include "broker/core/event_bus.h"

#include <utility>

namespace gmb::broker {

EventBus::EventBus() : thread_([this] { Run(); }) {}

EventBus::~EventBus() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void EventBus::Publish(v1::Event event) {
  base::MutexLock lock(&mu_);
  if (queue_.size() >= kMaxQueued) {
    ++missed_;
    return;
  }
  event.set_missed(std::exchange(missed_, 0));
  queue_.push_back(std::move(event));
}

void EventBus::Wake() {
  base::MutexLock lock(&mu_);
  if (asleep_ && !queue_.empty()) wake_.NotifyOne();
}

uint64_t EventBus::Subscribe(Listener listener) {
  base::MutexLock lock(&listeners_mu_);
  const uint64_t id = next_listener_++;
  listeners_.emplace(id, std::move(listener));
  return id;
}

void EventBus::Unsubscribe(uint64_t id) {
  base::MutexLock lock(&listeners_mu_);
  listeners_.erase(id);
}

void EventBus::Run() {
  while (true) {
    std::deque<v1::Event> batch;
    {
      base::MutexLock lock(&mu_);
      while (queue_.empty() && !stopping_) {
        asleep_ = true;
        wake_.Wait(&mu_);
      }
      asleep_ = false;
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    base::MutexLock lock(&listeners_mu_);
    for (const v1::Event& event : batch) {
      for (const auto& [id, listener] : listeners_) listener(event);
    }
  }
}

}  // namespace gmb::broker
