#ifndef GMB_CLIENT_CLI_VIEWS_TENANT_SUMMARY_H_
#define GMB_CLIENT_CLI_VIEWS_TENANT_SUMMARY_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// A line a tenant, the largest first, its devices added up; of very many the
// first 20.
void PrintTenantSummary(const v1::ListTenantsResponse& tenants,
                        const Terminal& terminal, std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_TENANT_SUMMARY_H_
