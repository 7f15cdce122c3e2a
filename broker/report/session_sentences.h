#ifndef GMB_BROKER_REPORT_SESSION_SENTENCES_H_
#define GMB_BROKER_REPORT_SESSION_SENTENCES_H_

#include "broker/machine/state.h"
#include "broker/machine/tenant.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::report {

// For `gmb why`: which sessions never park, and why, and which come into use so
// often that others are taken first. Of the tenant's own, and with `waits` those
// of others, which it waits for. Looks at no more than a slice may.
void AddSessionSentences(const State& state, const Tenant& tenant, bool waits,
                         v1::ExplainResponse* response);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_SESSION_SENTENCES_H_
