#ifndef GMB_BROKER_DAEMON_RELOAD_H_
#define GMB_BROKER_DAEMON_RELOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "broker/config/broker_config.h"
#include "broker/config/flags.h"
#include "broker/core/core.h"
#include "broker/daemon/reload_news.h"
#include "broker/daemon/tenant_setup.h"
#include "broker/declared/merge.h"
#include "broker/declared/pending.h"
#include "broker/server/admin_service.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The sockets of tenants, as the file has them. Called on the operators'
// thread.
struct FileDoors {
  // Of a tenant that is new.
  std::function<absl::Status(const std::string&, const SocketAccess&)> open;
  // Sets the users that may enter from now on. Returns those that might before.
  std::function<absl::StatusOr<SocketAccess>(const std::string&,
                                             const SocketAccess&)>
      set_access;
  std::function<absl::Status(const std::string&)> close;
};

// Reads the configuration file again while the broker serves, and makes what
// changed in it hold, as a start would: all of it, or nothing. A change that
// would take more from processes than `reload_may_reclaim` waits, and is tried
// again when it takes nothing any more, and when the file is read again.
// Changes that need a restart are named. Events: reloaded, reload_failed,
// reload_pending, restart_needed.
//
// The work is done on the operators' thread, one file after the other.
class Reloader {
 public:
  // All of them must outlive the reloader.
  struct Deps {
    Core* core;
    QuotaStore* store;
    EventBus* events;
    const Clock* clock;
    AdminService* admin;
    FileDoors doors;
    // Told what was read and is in force.
    std::function<void(const BrokerConfig&)> on_read = nullptr;
  };
  // `running`: what the broker was started with. `uuids`: the devices'
  // configured names with their UUIDs.
  Reloader(Flags flags, BrokerConfig running,
           std::map<std::string, std::string> uuids, Deps deps);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // Has the file read, soon. Thread-safe.
  void Reload();
  // Returns when no work of it is left, and none will come.
  void Stop();

  // As the file has it now. Thread-safe.
  [[nodiscard]] absl::Duration drain_deadline() const {
    return absl::Nanoseconds(drain_deadline_ns_.load());
  }

 private:
  // The outcome of one reading of the file.
  struct Plan {
    Declared base;  // what is declared, before
    FileMerge merge;
    std::vector<StartingTenant> tenants;  // without those that leave
    std::vector<TenantPolicy> changed;    // of them
    std::vector<PendingField> behind;     // see below
  };

  // --- On the operators' thread.
  void Read();
  enum class Why { kRead, kRetry };
  absl::Status Apply(Why why);
  [[nodiscard]] absl::StatusOr<Plan> MakePlan() const;
  absl::Status OpenDoors(const Plan& plan,
                         std::vector<std::function<void()>>* undo);
  // All that waits stays as it was, in the core and in what is declared.
  void Keep(const std::vector<HeldBack>& held, Plan* plan);
  void Fail(const absl::Status& why);
  void AddFindings(v1::DiagnoseResponse* response) const;
  // The changes that wait: reload_pending.cc.
  void OnEvent(const v1::Event& event);
  void ListenFor(const std::set<std::string>& tenants);
  // For what may let something happen that waits now.
  void ListenForWaiting();
  void QueueRetry();
  void Retry();
  [[nodiscard]] bool AnyTakesNothing() const;
  // Tenants that the file does not name any more: reload_leaving.cc.
  // Those that do not wait, and were not seen off before.
  [[nodiscard]] std::vector<std::string> Going(const Plan& plan) const;
  void Leave(const Plan& plan);
  void SeeOff(const std::string& name);
  void EndLeaving(const std::string& name, uint64_t number,
                  const absl::Status& gone);
  absl::Status Delete(const std::string& name);

  const Flags flags_;
  const BrokerConfig running_;
  const std::map<std::string, std::string> uuids_;
  const Deps deps_;
  const ReloadNews news_;

  std::atomic<bool> queued_{false};
  std::atomic<bool> retry_queued_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> drain_deadline_ns_;

  // --- The operators' thread's.
  BrokerConfig file_;  // as last read
  absl::Time read_at_;
  std::vector<PendingField> pending_;
  // Of them, those that wait for the end of what an operator set for a time.
  std::vector<PendingField> behind_;
  // Those whose limits wait: as the file wants them, and as they are.
  std::map<std::string, TenantPolicy> wanted_;
  std::map<std::string, TenantPolicy> kept_;
  std::vector<HeldBack> held_;  // all that waits
  // Tenants that were seen off, and have no guarantee since.
  std::set<std::string> seen_off_;
  // Of those, the ones that are going, and that the reload sees off.
  struct Leaving {
    uint64_t number = 0;
    quota::TenantId tenant;
  };
  std::map<std::string, Leaving> under_way_;
  uint64_t departures_ = 0;           // so far; the last one's number
  std::set<std::string> overstayed_;  // of those, the ones that did not go
  std::vector<std::string> restart_;
  std::string failure_;  // of the last reading; empty: none

  base::Mutex mu_;
  std::set<std::string> waiting_ ABSL_GUARDED_BY(mu_);  // tenants
  uint64_t subscription_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_RELOAD_H_
