#ifndef GMB_BROKER_SERVER_WAITING_GUARANTEES_H_
#define GMB_BROKER_SERVER_WAITING_GUARANTEES_H_

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "broker/core/core.h"
#include "broker/server/admin_calls.h"
#include "broker/server/not_in_force.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The tenants whose declared guarantee does not fit now: it comes into force
// when something has made room for it. The operators' thread's, but for the
// events that it listens to.
class WaitingGuarantees {
 public:
  // All of them must outlive it.
  WaitingGuarantees(Core* core, QuotaStore* store, EventBus* events,
                    NotInForce* not_in_force, AdminCalls* calls)
      : core_(core),
        store_(store),
        events_(events),
        not_in_force_(not_in_force),
        calls_(calls) {}

  // Waits for those that were left out at the start, and listens to events.
  void Start();
  // It gives `calls` no more work when it returns.
  void Stop();

  // Its guarantee is not in force from here on.
  void Add(const std::string& tenant);
  // An operator has set the tenant, perhaps without a word on its guarantee.
  void OnSet(const std::string& tenant);
  // The tenant was made, changed or deleted, and that is stored.
  void OnChanged(const std::string& tenant);
  // The tenant is as declared, if that was waited for.
  void OnFit(const std::string& tenant);
  // Nothing of the tenant is left out any more.
  void Settle(const std::string& tenant);

 private:
  // It has another guarantee than is declared, somewhere.
  [[nodiscard]] bool Lacks(const std::string& tenant) const;
  // It is not as declared: that, or a quota of it is for a device that is not here.
  [[nodiscard]] bool IsLeftOut(const std::string& tenant) const;
  void OnEvent(const v1::Event& event);
  void QueueRetry();
  void Retry();

  Core* const core_;
  QuotaStore* const store_;
  EventBus* const events_;
  NotInForce* const not_in_force_;
  AdminCalls* const calls_;
  uint64_t subscription_ = 0;
  std::set<std::string> tenants_;
  // For the events' thread.
  std::atomic<bool> any_ = false;
  std::atomic<bool> retry_queued_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_WAITING_GUARANTEES_H_
