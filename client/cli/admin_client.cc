#include "client/cli/admin_client.h"

#include "client/cli/no_answer.h"

namespace gmb::cli {

AdminClient::AdminClient(internal::OperatorSession session)
    : session_(std::move(session)),
      stub_(v1::Admin::NewStub(session_.channel())) {}

absl::StatusOr<AdminClient> AdminClient::Connect(
    const std::string& socket_dir) {
  absl::StatusOr<internal::OperatorSession> session =
      internal::OperatorSession::Open(socket_dir, kTimeout);
  if (!session.ok()) {
    return NoBrokerForOperators(session.status(),
                                internal::ResolveSocketDir(socket_dir));
  }
  return AdminClient(*std::move(session));
}

absl::Status AdminClient::ToStatus(const grpc::Status& status) const {
  return LostBroker(internal::OperatorSession::ToStatus(status), socket_dir());
}

std::unique_ptr<grpc::ClientReader<v1::Event>> AdminClient::Watch(
    grpc::ClientContext* context) const {
  session_.Authorize(context);
  return stub_->Watch(context, v1::WatchRequest());
}

}  // namespace gmb::cli
