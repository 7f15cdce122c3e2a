// A session begins: opened by the core, and told to its peer.
#include "broker/server/session_starts.h"

#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "broker/server/handle_frames.h"
#include "broker/server/login_uid.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

absl::Status TooMuchUnread() {
  return proto::MakeError(
      v1::TOO_MANY_SESSIONS,
      "processes of this tenant left too much unread that the broker sent "
      "them: end those that hang, then try again",
      {.retry_after = absl::Seconds(1)});
}

}  // namespace

absl::Status SessionStarts::Start(uint64_t id, HandleConnection* connection,
                                  const ProvedHello& hello) {
  GMB_ASSIGN_OR_RETURN(const OpenedSession opened, Open(*connection, hello));
  connection->session = opened.id;
  connection->outbox = opened.outbox;
  connection->unread =
      std::make_shared<UnreadFds>(deps_.in_flight, opened.tenant);
  const bool is_tenants = connection->origin != Origin::kAdmin;
  if (deps_.calls->keep != nullptr && is_tenants) {
    deps_.calls->keep(opened.id, connection->socket->fd(), connection->pidfd,
                      opened.gate_page.get());
  }
  GMB_RETURN_IF_ERROR(Welcome(connection, opened));
  if (deps_.calls->welcomed != nullptr && is_tenants)
    deps_.calls->welcomed(opened.id);
  Attach(id, connection);
  return absl::OkStatus();
}

absl::StatusOr<OpenedSession> SessionStarts::Open(
    const HandleConnection& connection, const ProvedHello& hello) const {
  const ipc::PeerCredentials& peer = connection.greeting->peer();
  const std::optional<uid_t> login_uid =
      connection.origin == Origin::kAdmin ? LoginUidOf(peer.pid) : std::nullopt;
  return deps_.calls->open({.origin = connection.origin,
                            .tenant_directory = connection.tenant_directory,
                            .pid = peer.pid,
                            .uid = peer.uid,
                            .gid = peer.gid,
                            .login_uid = login_uid,
                            .program = hello.program,
                            .tenant_token = hello.tenant_token,
                            .pidfd = connection.pidfd});
}

absl::Status SessionStarts::Welcome(HandleConnection* connection,
                                    const OpenedSession& opened) {
  std::vector<int> fds;
  if (opened.gate_page.valid()) {
    fds.push_back(opened.gate_page.get());
    if (!TakeRoom(connection, fds.size())) return TooMuchUnread();
    deps_.sweep->SetSoon();
  }
  const absl::StatusOr<bool> sent =
      connection->socket->TrySend(WelcomeFrame(opened), fds);
  if (!fds.empty()) connection->unread->Sent();
  if (!sent.ok()) return sent.status();
  return *sent ? absl::OkStatus() : absl::UnavailableError("no room for it");
}

bool SessionStarts::TakeRoom(HandleConnection* connection, uint64_t fds) const {
  if (connection->unread->Take(fds)) return true;
  if (!deps_.unread->MayLookAgain(std::chrono::steady_clock::now()))
    return false;
  deps_.unread->Look(*deps_.connections);
  return connection->unread->Take(fds);
}

void SessionStarts::Attach(uint64_t id, HandleConnection* connection) const {
  connection->outbox->AttachSocket(std::make_shared<SocketSender>(
      id, connection->socket, connection->unread, deps_.news));
}

}  // namespace gmb::broker
