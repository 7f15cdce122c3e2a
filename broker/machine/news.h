#ifndef GMB_BROKER_MACHINE_NEWS_H_
#define GMB_BROKER_MACHINE_NEWS_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "broker/machine/lease.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

// Events for the log and for who watches, as far as they are alike.
namespace gmb::broker {

// About a tenant, if one is named; to be published.
[[nodiscard]] v1::Event NewEvent(const State& state, absl::string_view kind,
                                 std::optional<quota::TenantId> tenant);
// About a lease.
[[nodiscard]] v1::Event LeaseEvent(const State& state, absl::string_view kind,
                                   const Lease& lease);
// Of a session that is, or was, attached to it.
void PublishAttached(const State& state, absl::string_view kind,
                     const Session& session, const Lease& lease, Turn& turn);
// A step of a lease's way out or back. `took`: 0 where it has only begun.
void PublishMove(const State& state, absl::string_view kind, const Lease& lease,
                 quota::Nanoseconds took, absl::string_view message,
                 Turn& turn);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_NEWS_H_
