// Carries each event of a lease's life from the core to the log and to
// watchers, in order, on a thread of its own.
#include "broker/core/event_bus.h"

#include <utility>

namespace gmb::broker {

EventBus::EventBus() : thread_([this] { Run(); }) {}

EventBus::~EventBus() {
  {
    base::MutexLock lock(&mu_);
    queue_.stopping = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void EventBus::Publish(v1::Event event) {
  base::MutexLock lock(&mu_);
  if (queue_.events.size() >= kMaxQueued) {
    ++queue_.missed;
    return;
  }
  event.set_missed(std::exchange(queue_.missed, 0));
  queue_.events.push_back(std::move(event));
}

void EventBus::Wake() {
  base::MutexLock lock(&mu_);
  if (queue_.asleep && !queue_.events.empty()) wake_.NotifyOne();
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
      while (queue_.events.empty() && !queue_.stopping) {
        queue_.asleep = true;
        wake_.Wait(&mu_);
      }
      queue_.asleep = false;
      if (queue_.events.empty()) return;
      batch.swap(queue_.events);
    }
    base::MutexLock lock(&listeners_mu_);
    for (const v1::Event& event : batch) {
      for (const auto& [id, listener] : listeners_) listener(event);
    }
  }
}

}  // namespace gmb::broker
