#ifndef GMB_BROKER_MACHINE_OWED_ANSWERS_H_
#define GMB_BROKER_MACHINE_OWED_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/machine/session.h"
#include "quota/units.h"

namespace gmb::broker {

// Evicts and Maps whose time is over and that are not answered yet: how many of
// each process, and of each tenant. A value without a clock.
class OwedAnswers {
 public:
  // Of a lease that the session has.
  struct Key {
    quota::LeaseId lease;
    uint64_t session = 0;

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void Add(quota::LeaseId lease, const Session& session);
  // The tenant that owed it. One of Keys().
  quota::TenantId Remove(const Key& key);

  [[nodiscard]] std::vector<Key> Keys() const;
  // Those of the lease.
  [[nodiscard]] std::vector<Key> KeysOf(quota::LeaseId lease) const;
  [[nodiscard]] uint32_t OfProcess(const Session& session) const;
  [[nodiscard]] uint32_t OfTenant(quota::TenantId tenant) const;

 private:
  // A pid or, of a process that has none here, the session.
  using Process = std::pair<pid_t, uint64_t>;
  struct Debtor {
    Process process;
    quota::TenantId tenant;
  };
  static Process ProcessOf(const Session& session);

  std::map<Key, Debtor> debtors_;
  absl::flat_hash_map<Process, uint32_t> of_process_;
  absl::flat_hash_map<quota::TenantId, uint32_t> of_tenant_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_OWED_ANSWERS_H_
