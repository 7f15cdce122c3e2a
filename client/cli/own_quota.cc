// A tenant looks at its own quota, through a session of its own.
#include "client/cli/own_quota.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "client/cli/no_answer.h"
#include "client/cli/tenant_identity.h"
#include "client/session/socket_dir.h"
#include "gmb/client.h"

namespace gmb::cli {

absl::StatusOr<v1::QuotaReport> AskOwnQuota(const std::string& socket_dir,
                                            const std::string& tenant,
                                            ClientOptions options) {
  GMB_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                       ConnectAsTenant(socket_dir, tenant, std::move(options)));
  const absl::StatusOr<std::vector<QuotaView>> quotas = client->GetQuota();
  if (!quotas.ok()) {
    return LostBroker(quotas.status(), internal::ResolveSocketDir(socket_dir));
  }
  v1::QuotaReport report;
  report.set_tenant(client->tenant());
  for (const QuotaView& quota : *quotas) {
    v1::QuotaView* view = report.add_quotas();
    view->set_device(quota.device);
    view->set_guarantee_bytes(quota.guarantee_bytes);
    view->set_limit_bytes(quota.limit_bytes);
    view->set_weight(quota.weight);
    view->set_leased_bytes(quota.leased_bytes);
    view->set_unreturned_bytes(quota.unreturned_bytes);
    view->set_pool_bytes(quota.pool_bytes);
    view->set_obtainable_bytes(quota.obtainable_bytes);
    view->set_over_limit_bytes(quota.over_limit_bytes);
    view->set_evicted_bytes(quota.evicted_bytes);
  }
  return report;
}

}  // namespace gmb::cli
