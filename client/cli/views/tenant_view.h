#ifndef GMB_CLIENT_CLI_VIEWS_TENANT_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_TENANT_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// Quotas, one row a tenant and device pool; where its bytes are, likewise; and
// how they may be reclaimed, one row a tenant.
void PrintTenants(const v1::ListTenantsResponse& tenants,
                  const Terminal& terminal, std::ostream& out);
// One tenant in full.
void PrintTenant(const v1::Tenant& tenant, const Terminal& terminal,
                 std::ostream& out);
// How a change of quota or pool went: "applied", or what is still to come.
void PrintChange(const v1::Change& change, const Terminal& terminal,
                 std::ostream& out);
// The tenant's memory, its waiting requests, and what stands in their way.
void PrintExplanation(const v1::ExplainResponse& explanation,
                      const Terminal& terminal, std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_TENANT_VIEW_H_
