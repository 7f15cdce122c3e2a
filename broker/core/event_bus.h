#ifndef GMB_BROKER_CORE_EVENT_BUS_H_
#define GMB_BROKER_CORE_EVENT_BUS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Carries what happened from the core to the log and to watchers, in order,
// on a thread of its own. Publish is cheap and may be called under the core's
// lock, Wake after it; when readers are so slow that kMaxQueued events wait,
// further ones are counted and dropped, and the next one delivered says how
// many.
class EventBus {
 public:
  using Listener = std::function<void(const v1::Event&)>;
  static constexpr size_t kMaxQueued = 65536;

  EventBus();
  ~EventBus();  // delivers what is queued, then stops

  void Publish(v1::Event event);
  // Sets the delivery of what was published going.
  void Wake();

  // `listener` is called on the bus's thread and must not block for long.
  // Unsubscribe returns when the listener is not running and never will again;
  // it must not be called from a listener.
  [[nodiscard]] uint64_t Subscribe(Listener listener);
  void Unsubscribe(uint64_t id);

 private:
  struct Queue {
    std::deque<v1::Event> events;
    uint64_t missed = 0;
    bool asleep = false;  // the thread
    bool stopping = false;
  };

  void Run();

  base::Mutex mu_;
  base::CondVar wake_;
  Queue queue_ ABSL_GUARDED_BY(mu_);

  base::Mutex
      listeners_mu_;  // held while listeners run; never together with mu_
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(listeners_mu_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mu_) = 1;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_EVENT_BUS_H_
