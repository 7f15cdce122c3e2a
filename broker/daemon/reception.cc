// Peers at the handle sockets: their sessions, and their streams.
#include "broker/daemon/reception.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "proto/error_status.h"

namespace gmb::broker {

SessionCalls Reception::Calls() {
  SessionCalls calls{
      .open = [this](const PeerIdentity& peer) { return Open(peer); },
      .close = [this](uint64_t session,
                      std::string_view reason) { Close(session, reason); }};
  calls.has_leases = [this](uint64_t session) {
    const auto report = deps_.core->SessionReport(session);
    return report.ok() && report->leases() > 0;
  };
  calls.open_stream = [this](const StreamPeer& peer,
                             StreamConnection connection) {
    return OpenStream(peer, std::move(connection));
  };
  if (deps_.keeping != nullptr) {
    calls.keep = [this](uint64_t session, int socket, const SharedFd& pidfd,
                        int gate_page) {
      deps_.keeping->KeepSession(session, socket, pidfd, gate_page);
    };
    calls.welcomed = [this](uint64_t session) {
      deps_.core->OnWelcomed(session);
    };
  }
  return calls;
}

absl::StatusOr<OpenedSession> Reception::Open(const PeerIdentity& peer) {
  absl::StatusOr<OpenedSession> opened = deps_.core->OpenSession(peer);
  if (!opened.ok()) {
    refusals_.Add(peer, opened.status(), deps_.clock->WallTime());
    deps_.counts->AddRefusedSession(ReasonName(opened.status()));
  }
  if (opened.ok() && peer.origin != Origin::kAdmin) {
    // Before the Welcome: the client connects to gRPC on it.
    admission_.Add(opened->id, {peer.origin, peer.tenant_directory},
                   ProcessOf(peer.pidfd.get(), peer.pid), opened->tenant);
  }
  return opened;
}

void Reception::Close(uint64_t session, std::string_view reason) {
  admission_.Remove(session);
  deps_.core->CloseSession(session, {reason.data(), reason.size()});
  if (deps_.keeping != nullptr) deps_.keeping->EndSession(session);
}

// The token counts where gRPC's connections would let it count: from the process
// that has greeted, at the directory where it has.
absl::Status Reception::OpenStream(const StreamPeer& peer,
                                   StreamConnection connection) {
  const std::vector<uint64_t> sessions =
      admission_.SessionsOf(peer.door, ProcessOf(peer.pidfd.get(), peer.pid));
  // Of the transport, as for gRPC: a session of it may live on elsewhere, with
  // the keeper.
  if (sessions.empty() && peer.door.origin != Origin::kAdmin) {
    return absl::UnavailableError(
        "this process has no session at this socket: greet first");
  }
  GMB_ASSIGN_OR_RETURN(const Caller caller,
                       deps_.core->Authenticate(peer.token, peer.pid));
  if (!caller.is_operator && std::find(sessions.begin(), sessions.end(),
                                       caller.session) == sessions.end()) {
    return proto::MakeError(
        v1::NO_SESSION,
        "this process has not greeted for that session at this socket");
  }
  return streams_->Open(std::move(connection), caller);
}

}  // namespace gmb::broker
