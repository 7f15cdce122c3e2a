#ifndef GMB_BROKER_SERVER_SESSION_SERVICE_H_
#define GMB_BROKER_SERVER_SESSION_SERVICE_H_

#include "broker/core/core.h"
#include "broker/server/call_authenticator.h"
#include "broker/server/request_pace.h"
#include "broker/server/timed_work.h"
#include "gmb/v1/session.grpc.pb.h"

namespace gmb::broker {

// The gRPC side of sessions: authenticates a stream by its token, hands its
// messages to the core and writes what the session's outbox says. No policy.
class SessionService : public v1::SessionService::CallbackService {
 public:
  // All must outlive the service.
  SessionService(Core* core, const CallAuthenticator* calls, RequestPace* pace,
                 TimedWork* timed)
      : core_(core), calls_(calls), pace_(pace), timed_(timed) {}

  grpc::ServerBidiReactor<v1::ClientMessage, v1::BrokerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Core* const core_;
  const CallAuthenticator* const calls_;
  RequestPace* const pace_;
  TimedWork* const timed_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SESSION_SERVICE_H_
