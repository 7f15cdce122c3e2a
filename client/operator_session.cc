#include "client/operator_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/greeting.h"
#include "client/socket_dir.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

constexpr char kTokenKey[] = "gmb-session-bin";
constexpr char kProgram[] = "gmb";

}  // namespace

struct OperatorSession::Impl {
  Impl(std::string name, SocketDir admin, Greeting greeted)
      : socket_dir(std::move(name)),
        dir(std::move(admin)),
        greeting(std::move(greeted)) {}

  const std::string socket_dir;
  SocketDir dir;  // DIR/admin; the channel reconnects through it
  Greeting greeting;
  std::shared_ptr<grpc::Channel> channel;
};

OperatorSession::OperatorSession(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
OperatorSession::OperatorSession(OperatorSession&&) noexcept = default;
OperatorSession& OperatorSession::operator=(OperatorSession&&) noexcept =
    default;
OperatorSession::~OperatorSession() = default;

absl::StatusOr<OperatorSession> OperatorSession::Open(
    const std::string& socket_dir, absl::Duration timeout) {
  const std::string name = ResolveSocketDir(socket_dir);
  absl::StatusOr<SocketDir> dir = SocketDir::Open(absl::StrCat(name, "/admin"));
  if (!dir.ok()) return dir.status();
  absl::StatusOr<Greeting> greeting =
      Greet(dir->handle_path(), kProgram, "", timeout);
  if (!greeting.ok()) return greeting.status();
  if (!greeting->welcome.tenant().empty()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the socket in ", name, "/admin is a tenant's, not an operator's"));
  }
  auto impl =
      std::make_unique<Impl>(name, *std::move(dir), *std::move(greeting));
  impl->channel = grpc::CreateChannel(impl->dir.grpc_target(),
                                      grpc::InsecureChannelCredentials());
  return OperatorSession(std::move(impl));
}

const std::shared_ptr<grpc::Channel>& OperatorSession::channel() const {
  return impl_->channel;
}

const std::string& OperatorSession::socket_dir() const {
  return impl_->socket_dir;
}

void OperatorSession::Authorize(grpc::ClientContext* context) const {
  context->AddMetadata(kTokenKey, impl_->greeting.welcome.token());
}

absl::Status OperatorSession::ToStatus(const grpc::Status& status) {
  return proto::FromGrpcStatus(status);
}

}  // namespace gmb::internal
