#ifndef GMB_BROKER_SERVER_GROWN_POOLS_H_
#define GMB_BROKER_SERVER_GROWN_POOLS_H_

#include <atomic>
#include <cstdint>

#include "broker/core/core.h"
#include "broker/server/admin_calls.h"
#include "broker/server/not_in_force.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"
#include "quota/amount.h"

namespace gmb::broker {

// Whether the pool is as large as that, which is rounded to its granules. A
// share fits always.
[[nodiscard]] bool HasSize(const v1::PoolStatus& pool,
                           const quota::Amount& size);

// The stored sizes of pools that did not fit at the start: each is in force once
// its pool has grown to it. The operators' thread's, but for the events that it
// listens to.
class GrownPools {
 public:
  // All of them must outlive it.
  GrownPools(Core* core, QuotaStore* store, EventBus* events,
             NotInForce* not_in_force, AdminCalls* calls)
      : core_(core),
        store_(store),
        events_(events),
        not_in_force_(not_in_force),
        calls_(calls) {}

  // Listens to events from here on, and looks at what they said before.
  void Start();
  // It gives `calls` no more work when it returns.
  void Stop() { events_->Unsubscribe(subscription_); }

 private:
  void QueueLook();
  void Look();

  Core* const core_;
  QuotaStore* const store_;
  EventBus* const events_;
  NotInForce* const not_in_force_;
  AdminCalls* const calls_;
  uint64_t subscription_ = 0;
  std::atomic<bool> look_queued_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_GROWN_POOLS_H_
