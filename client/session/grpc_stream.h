#ifndef GMB_CLIENT_SESSION_GRPC_STREAM_H_
#define GMB_CLIENT_SESSION_GRPC_STREAM_H_

#include <memory>
#include <string>

#include "base/mutex.h"
#include "client/session/stream.h"
#include "gmb/v1/session.grpc.pb.h"
#include "gmb/v1/session.pb.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"

namespace gmb::internal {

// A stream by gRPC, whose threads bring the messages.
//
// Keep it until OnStreamEnded, and destroy it on a thread that is not gRPC's:
// it may hold the last reference to its channel, whose end joins those threads.
class GrpcStream final
    : public Stream,
      public grpc::ClientBidiReactor<v1::ClientMessage, v1::BrokerMessage> {
 public:
  [[nodiscard]] static std::shared_ptr<GrpcStream> Create(
      v1::SessionService::Stub& stub, const std::string& token,
      StreamOwner* owner);

  void Start() override;
  void Poke() override;
  void Cancel() override { context_.TryCancel(); }

 private:
  explicit GrpcStream(StreamOwner* owner) : owner_(owner) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  StreamOwner* const owner_;
  grpc::ClientContext context_;
  v1::BrokerMessage incoming_;  // of the read in flight

  base::Mutex mu_;
  // The message in flight. Shared with the thread that starts the write: the
  // next write can begin on another before StartWrite has returned.
  std::shared_ptr<const v1::ClientMessage> outgoing_ ABSL_GUARDED_BY(mu_);
  // Writes start outside of gRPC's reactions, so a hold keeps OnDone away. It
  // is removed when reads have ended and no write is in flight.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool write_failed_ ABSL_GUARDED_BY(mu_) = false;
  bool reads_over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_GRPC_STREAM_H_
