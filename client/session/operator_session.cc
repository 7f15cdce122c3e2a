// An operator's session, for the command.
#include "client/session/operator_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/session/channel.h"
#include "client/session/greeting.h"
#include "client/session/socket_dir.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

constexpr char kTokenKey[] = "gmb-session-bin";
constexpr char kProgram[] = "gmb";
// How soon a hang-up is seen while the channel connects.
constexpr absl::Duration kGlance = absl::Milliseconds(50);

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
  GMB_ASSIGN_OR_RETURN(SocketDir dir,
                       SocketDir::Open(absl::StrCat(name, "/admin")));
  GMB_ASSIGN_OR_RETURN(Greeting greeting,
                       Greet(dir.handle_path(), kProgram, "", timeout));
  if (!greeting.welcome.tenant().empty()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the socket in ", name, "/admin is a tenant's, not an operator's"));
  }
  auto impl = std::make_unique<Impl>(name, std::move(dir), std::move(greeting));
  impl->channel = MakeChannel(impl->dir);
  return OperatorSession(std::move(impl));
}

const std::shared_ptr<grpc::Channel>& OperatorSession::channel() const {
  return impl_->channel;
}

absl::Status OperatorSession::AwaitChannel(absl::Time deadline) const {
  while (true) {
    const grpc_connectivity_state state =
        impl_->channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    if (AwaitHangUp(absl::ZeroDuration()))
      return absl::UnavailableError("it hung up");
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no connection at ", impl_->dir.name(), "/gmb.sock"));
    }
    impl_->channel->WaitForStateChange(
        state, absl::ToChronoTime(std::min(deadline, now + kGlance)));
  }
}

bool OperatorSession::AwaitHangUp(absl::Duration timeout) const {
  return impl_->greeting.socket.AwaitHangUp(timeout);
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
