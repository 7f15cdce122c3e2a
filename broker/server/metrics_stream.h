#ifndef GMB_BROKER_SERVER_METRICS_STREAM_H_
#define GMB_BROKER_SERVER_METRICS_STREAM_H_

#include <cstddef>
#include <string>

#include "broker/gateway/grpc_connections.h"
#include "gmb/v1/admin.pb.h"
#include "grpcpp/support/server_callback.h"

namespace gmb::broker {

// One `gmb metrics`: a text in pieces, as it may be longer than the 4 MiB of a
// message. Deletes itself when gRPC is done with it.
class MetricsStream : public grpc::ServerWriteReactor<v1::MetricsPiece> {
 public:
  static constexpr size_t kPieceBytes = size_t{512} << 10;

  MetricsStream(std::string text, GrpcConnections::Proof proof);

  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  void WriteNext();

  const std::string text_;
  const GrpcConnections::Proof proof_;
  size_t written_ = 0;
  v1::MetricsPiece piece_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_METRICS_STREAM_H_
