// One lease that many sessions attach to, none of which takes its handles: what
// the kernel counts as fds in flight is the lease's slabs times the sessions.
#include <poll.h>

#include <memory>
#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kUnreadPatience = absl::Seconds(10);
constexpr char kName[] = "unread";

struct Reader {
  OwnSession session;
  HandStream stream;
};

absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& socket_dir) {
  absl::StatusOr<OwnSession> session = OwnSession::Greet(socket_dir);
  if (!session.ok()) return session.status();
  auto reader = std::make_unique<Reader>(Reader{*std::move(session), {}});
  if (!reader->stream.Open(socket_dir, reader->session.welcome().token()))
    return absl::UnavailableError("no stream");
  return reader;
}

// The lease of all, and its slabs.
absl::StatusOr<std::vector<Slab>> Share(Reader* writer, uint64_t bytes) {
  v1::ClientMessage acquire = AcquireOf(bytes);
  acquire.mutable_acquire()->set_share_as(kName);
  const auto grant = writer->stream.Ask(acquire, kUnreadPatience);
  if (!grant.has_value() || !grant->has_grant())
    return absl::UnavailableError("no lease to share");
  absl::StatusOr<std::vector<Slab>> slabs =
      TakeSlabs(writer->session.socket(), grant->grant().slabs());
  if (!slabs.ok()) return slabs;
  writer->stream.Send(MappedOf(grant->grant().lease_id(), 0));
  v1::ClientMessage seal;
  seal.mutable_seal()->set_lease_id(grant->grant().lease_id());
  const auto sealed = writer->stream.Ask(seal, kUnreadPatience);
  if (!sealed.has_value() || !sealed->has_sealed())
    return absl::UnavailableError("not sealed");
  return slabs;
}

bool HasHungUp(const Reader& reader) {
  pollfd peer{.fd = const_cast<Reader&>(reader).session.socket().fd(),
              .events = POLLRDHUP,
              .revents = 0};
  return ::poll(&peer, 1, 0) > 0;
}

}  // namespace

absl::Status UnreadSlabs(Attack& attack) {
  const AttackOptions& options = attack.options();
  auto writer = Open(options.socket_dir);
  if (!writer.ok()) return writer.status();
  const auto slabs = Share(writer->get(), options.bytes);
  if (!slabs.ok()) return slabs.status();
  attack.Count("slabs", slabs->size());
  v1::ClientMessage attach;
  attach.mutable_attach()->set_name(kName);
  attach.mutable_attach()->mutable_wait()->set_seconds(10);
  std::vector<std::unique_ptr<Reader>> readers(
      static_cast<size_t>(options.connections));
  while (attack.GoesOn()) {
    ::poll(nullptr, 0, 5);
    for (std::unique_ptr<Reader>& reader : readers) {
      if (reader != nullptr && !HasHungUp(*reader)) continue;
      if (reader != nullptr) attack.Count("sessions_lost");
      reader = nullptr;
      auto opened = Open(options.socket_dir);
      if (!opened.ok()) break;
      reader = *std::move(opened);
      reader->stream.Send(attach);
      attack.Count("attached");
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
