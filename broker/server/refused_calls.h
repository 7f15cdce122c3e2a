#ifndef GMB_BROKER_SERVER_REFUSED_CALLS_H_
#define GMB_BROKER_SERVER_REFUSED_CALLS_H_

#include "broker/server/call_authenticator.h"
#include "grpcpp/generic/async_generic_service.h"

namespace gmb::broker {

// The calls that a tenant may make and is not served: all but its session's
// stream. Every such call ends at its headers. So none is kept open, and
// nothing that is sent on it is kept.
class RefusedCalls : public grpc::CallbackGenericService {
 public:
  // `calls` must outlive the service.
  explicit RefusedCalls(const CallAuthenticator* calls) : calls_(calls) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const CallAuthenticator* const calls_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_REFUSED_CALLS_H_
