// A session whose memory is taken while it punches holes into it.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "ipc/gate_page.h"
#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kPunchPatience = absl::Seconds(10);
constexpr absl::Duration kWhileCopied = absl::Milliseconds(30);
constexpr off_t kPage = 4'096;

class Puncher {
 public:
  Puncher(Attack* attack, OwnSession session, ipc::GatePage gate)
      : attack_(attack), session_(std::move(session)), gate_(std::move(gate)) {}

  absl::Status Begin() {
    if (!stream_.Open(attack_->options().socket_dir,
                      session_.welcome().token())) {
      return absl::UnavailableError("no stream");
    }
    v1::ClientMessage gate;
    gate.mutable_set_gate()->set_on(true);
    const auto set = stream_.Ask(gate, kPunchPatience);
    if (!set.has_value() || !set->has_gate_set())
      return absl::UnavailableError("no gate");
    v1::ClientMessage acquire = AcquireOf(attack_->options().bytes);
    acquire.mutable_acquire()->set_contents(v1::PRESERVE);
    const auto grant = stream_.Ask(acquire, kPunchPatience);
    if (!grant.has_value() || !grant->has_grant())
      return absl::UnavailableError("no lease");
    const absl::Status taken =
        Take(grant->grant().lease_id(), 0, grant->grant().slabs());
    if (!taken.ok()) return taken;
    // Parked, in a new epoch.
    const uint64_t epoch = ipc::LookAtGate(gate_.cells()).epoch();
    gate_.cells().word =
        ipc::GateWord(ipc::GateState::kParked, 0, epoch + 1).bits();
    return absl::OkStatus();
  }

  // False: the stream is over.
  bool Turn() {
    Punch();
    const auto message = stream_.Receive(absl::Milliseconds(1));
    if (!message.has_value()) return stream_.is_open();
    if (message->has_evict()) Leave(message->evict());
    if (message->has_map()) {
      attack_->Count("brought_back");
      return Take(message->map().lease_id(), message->map().move(),
                  message->map().slabs())
          .ok();
    }
    return true;
  }

 private:
  absl::Status Take(uint64_t lease, uint64_t move, uint32_t count) {
    auto slabs = TakeSlabs(session_.socket(), count);
    if (!slabs.ok()) return slabs.status();
    slabs_ = *std::move(slabs);
    for (const Slab& slab : slabs_) std::memset(slab.at, 0x66, slab.bytes);
    stream_.Send(MappedOf(lease, move));
    return absl::OkStatus();
  }

  void Punch() {
    if (slabs_.empty()) return;
    const Slab& slab = slabs_[random_() % slabs_.size()];
    const off_t at =
        static_cast<off_t>(random_() % (slab.bytes / kPage)) * kPage;
    const int way = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (::fallocate(slab.fd.get(), way, at,
                    static_cast<off_t>(slab.bytes) - at) == 0) {
      attack_->Count("punched");
    }
  }

  void Leave(const v1::Evict& evict) {
    const absl::Time until = absl::Now() + kWhileCopied;
    while (absl::Now() < until) Punch();
    slabs_.clear();
    v1::ClientMessage unmapped;
    unmapped.mutable_unmapped()->set_lease_id(evict.lease_id());
    unmapped.mutable_unmapped()->set_move(evict.move());
    stream_.Send(unmapped);
    attack_->Count("evicted");
    v1::ClientMessage restore;
    restore.mutable_restore()->mutable_wait()->set_seconds(60);
    stream_.Send(restore);
  }

  Attack* const attack_;
  OwnSession session_;
  const ipc::GatePage gate_;
  HandStream stream_;
  std::vector<Slab> slabs_;
  std::mt19937_64 random_{1};
};

}  // namespace

absl::Status PunchSlabs(Attack& attack) {
  absl::StatusOr<OwnSession> session =
      OwnSession::Greet(attack.options().socket_dir);
  if (!session.ok()) return session.status();
  absl::StatusOr<ipc::GatePage> gate =
      ipc::GatePage::Map(session->gate().get());
  if (!gate.ok()) return gate.status();
  Puncher puncher(&attack, *std::move(session), *std::move(gate));
  const absl::Status begun = puncher.Begin();
  if (!begun.ok()) return begun;
  while (attack.GoesOn()) {
    if (!puncher.Turn()) return absl::UnavailableError("the stream is over");
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
