#ifndef GMB_BROKER_DAEMON_TAKEOVER_H_
#define GMB_BROKER_DAEMON_TAKEOVER_H_

#include <vector>

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/daemon/keeping.h"
#include "broker/daemon/pool_setup.h"
#include "broker/doors/admission.h"
#include "broker/machine/adoption.h"
#include "broker/metrics/event_counts.h"
#include "broker/server/handle_server.h"

namespace gmb::broker {

// A core goes on with the sessions that the last broker has left, and then a
// handle server with their connections.
class Takeover {
 public:
  // Both outlive it.
  Takeover(Keeping* keeping, Core* core) : keeping_(keeping), core_(core) {}

  // With the slabs as the devices have imported them. Nobody is served yet.
  void AdoptSessions(ImportedSlabs imported, metrics::EventCounts* counts);
  // Before anybody else can connect: their gRPC connections are let in as those
  // of sessions that have greeted.
  void AdoptConnections(Admission* admission, HandleServer* handles);

 private:
  void CountLeases(metrics::EventCounts* counts) const;
  absl::Status AdoptConnection(OpenedSession opened, Admission* admission,
                               HandleServer* handles);

  Keeping* const keeping_;
  Core* const core_;
  // Between the core's adoption and that of the connections.
  std::vector<OpenedSession> adopted_;
  std::vector<NotAdopted> not_adopted_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_TAKEOVER_H_
