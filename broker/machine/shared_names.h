// The names of tenants' shared leases, and who waits to attach to these
// (docs/shared.md).
#ifndef GMB_BROKER_MACHINE_SHARED_NAMES_H_
#define GMB_BROKER_MACHINE_SHARED_NAMES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/lease.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// An Attach that is not answered yet.
struct PendingAttach {
  uint64_t session = 0;
  uint64_t client_id = 0;
  quota::Instant asked;
  quota::Instant deadline;
};

// A name, from the Acquire that takes it until its lease ends or is dropped.
struct SharedName {
  quota::TenantId tenant;
  std::string name;
  quota::RequestId request;             // the Acquire
  uint64_t writer = 0;                  // the session that made it
  std::optional<quota::LeaseId> lease;  // once it is sealed
  // By the numbers of their arrival.
  std::map<uint64_t, PendingAttach> waiting;
  std::map<uint64_t, uint32_t> waiting_of;  // how many are a session's
  // Restores for the sake of who attaches that could not be carried out, since
  // the last that could.
  uint32_t attempts = 0;
};

// All of them. An Attach that waits stands with its name, its session and its
// deadline alike, or nowhere: so these change here alone, and what is handed
// out is to be read. Names stay where they are until they end.
//
// A value without threads or locks: the core changes it under its lock, and
// answers those who no longer wait.
class SharedNames {
 public:
  // The name that an Acquire asks for by `share_as` and `keep`, and whether it
  // is free.
  [[nodiscard]] absl::Status Check(quota::TenantId tenant,
                                   const v1::Acquire& acquire) const;
  // It must be free.
  void Take(quota::TenantId tenant, const PendingAcquire& request);
  // Those that waited for it.
  std::vector<PendingAttach> End(const SharedName& name);
  // From now on it can be attached to.
  void SetLease(const SharedName& name, quota::LeaseId lease);

  // Null: there is none.
  [[nodiscard]] const SharedName* Find(quota::TenantId tenant,
                                       const std::string& name) const;
  // Null also when another Acquire has it by now.
  [[nodiscard]] const SharedName* Of(quota::TenantId tenant,
                                     const PendingAcquire& request) const;
  [[nodiscard]] std::vector<const SharedName*> OfTenant(
      quota::TenantId tenant) const;

  void Wait(const SharedName& name, const PendingAttach& attach);
  // That one waits no longer.
  void StopWaiting(uint64_t session, uint64_t client_id);
  // Nor do those who are named by `which`, in their order. Attempts are counted
  // anew.
  std::vector<PendingAttach> StopWaiting(
      const SharedName& name,
      const std::function<bool(const PendingAttach&)>& which);
  std::vector<PendingAttach> StopAllWaiting(const SharedName& name);
  // None of the session's does.
  void ForgetSession(uint64_t session);
  void CountAttempt(const SharedName& name);

  // The name that this request waits for; null: it does not wait.
  [[nodiscard]] const SharedName* WaitedFor(uint64_t session,
                                            uint64_t client_id) const;
  // The session's requests that wait, and how many they are.
  [[nodiscard]] std::vector<uint64_t> RequestsOf(uint64_t session) const;
  [[nodiscard]] size_t WaitingOf(uint64_t session) const;
  // The earliest deadline; Max without one.
  [[nodiscard]] quota::Instant due() const;
  // Session and request of the Attach that has it, which must be there.
  [[nodiscard]] std::pair<uint64_t, uint64_t> First() const;

 private:
  using Key = std::pair<quota::TenantId, std::string>;
  struct Place {
    Key name;
    uint64_t arrival = 0;
  };

  SharedName& Mutable(const SharedName& name);
  // It has left the name's `waiting`.
  void Unlist(SharedName& name, const PendingAttach& attach);

  std::map<Key, SharedName> names_;
  // Deadlines, sessions and requests of those who wait.
  std::set<std::tuple<quota::Instant, uint64_t, uint64_t>> due_;
  // By session and request.
  std::map<uint64_t, std::map<uint64_t, Place>> by_session_;
  uint64_t arrivals_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SHARED_NAMES_H_
