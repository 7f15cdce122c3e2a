#ifndef GMB_BROKER_SERVER_DECLARED_POLICY_H_
#define GMB_BROKER_SERVER_DECLARED_POLICY_H_

#include <optional>
#include <set>
#include <string>

#include "broker/core/core.h"
#include "broker/declared/declared.h"
#include "broker/declared/uids.h"
#include "broker/machine/tenant.h"

namespace gmb::broker {

// The tenant's policy as declared, which has the tenant, without a token. Values
// for a device that is not here are kept there, and have no effect.
[[nodiscard]] TenantPolicy DeclaredPolicy(const Declared& declared,
                                          const std::string& name,
                                          const Core& core);
// The same of what it had before its last change, as an operator would set it
// again: also for devices for which the file or an apply has said something
// since. None: it was not changed since it was made.
[[nodiscard]] std::optional<TenantPolicy> FormerPolicy(const Declared& declared,
                                                       const std::string& name,
                                                       const Core& core);
// A guarantee that was left out stays out, unless another one is declared: where
// `before` and the policy, both as declared, have the same, it gets the one that
// is `in_force`. It is tried again after the change.
void KeepLeftOut(const TenantPolicy& before, const TenantPolicy& in_force,
                 TenantPolicy* policy);
// The uids that tenants have now. Those of `changing` have to be declared, too:
// they give up the others.
[[nodiscard]] HeldUids UidsInForce(const Declared& declared, const Core& core,
                                   const std::set<std::string>& changing = {});
// As declared, with the token that the tenant has. None: there is no such
// tenant, or the file made it and does not name it any more: then it is to go
// as it is, and its guarantee may be another's by now. `owners`: of all that is
// declared.
[[nodiscard]] std::optional<TenantPolicy> PolicyOfStaying(
    const Declared& declared, const UidOwners& owners, const std::string& name,
    const Core& core);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_DECLARED_POLICY_H_
