#ifndef GMB_BROKER_DECLARED_UIDS_H_
#define GMB_BROKER_DECLARED_UIDS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "broker/declared/declared.h"
#include "broker/machine/tenant.h"

// A uid belongs to one tenant, whoever declares it.
namespace gmb::broker {

// Uids that tenants have now, whatever is declared: one that leaves has its own
// until it goes.
using HeldUids = std::map<uint32_t, std::string>;

// Refuses a uid that `next` gives to a second tenant, now or once values for a
// time have ended. The error (INVALID_ARGUMENT) names the uid, the tenant whose
// it is, and the one that gets it. Two that had it in `before` may keep it.
[[nodiscard]] absl::Status CheckUids(const Declared& before,
                                     const Declared& next,
                                     const HeldUids& held = {});

// The owners of uids. One that two tenants declare is the one's that has it now,
// else the one's into which it was written last.
class UidOwners {
 public:
  explicit UidOwners(const Declared& declared, const HeldUids& held = {});

  // Takes the uids of others out of the policy. Returns them, with the owners.
  std::map<uint32_t, std::string> TakeOthers(TenantPolicy* policy) const;

 private:
  std::map<uint32_t, std::string> owners_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_UIDS_H_
