// A client that stops for ever, or dies, while its memory is taken and brought
// back. Somebody has to want that memory.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipc/gate_page.h"
#include "tests/attack/attack.h"
#include "tests/attack/halt_at.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kMovePatience = absl::Seconds(30);
constexpr uint64_t kMovedBytes = uint64_t{8} << 20;

class MovedLife {
 public:
  MovedLife(const AttackOptions& options, OwnSession session,
            ipc::GatePage gate)
      : options_(options),
        session_(std::move(session)),
        gate_(std::move(gate)) {}

  absl::Status Live() {
    absl::Status done = Begin();
    if (done.ok()) done = Leave();
    if (done.ok()) done = ComeBack();
    return done.ok() ? absl::InvalidArgumentError("there is no such step")
                     : done;
  }

 private:
  absl::Status Begin() {
    if (!stream_.Open(options_.socket_dir, session_.welcome().token()))
      return absl::UnavailableError("no stream");
    v1::ClientMessage gate;
    gate.mutable_set_gate()->set_on(true);
    const auto set = stream_.Ask(gate, kMovePatience);
    if (!set.has_value() || !set->has_gate_set())
      return absl::UnavailableError("no gate");
    At("gate_on");
    v1::ClientMessage acquire = AcquireOf(kMovedBytes);
    acquire.mutable_acquire()->set_contents(v1::PRESERVE);
    const auto grant = stream_.Ask(acquire, kMovePatience);
    if (!grant.has_value() || !grant->has_grant())
      return absl::UnavailableError("no lease");
    lease_ = grant->grant().lease_id();
    const absl::Status taken = Take(grant->grant().slabs());
    if (!taken.ok()) return taken;
    stream_.Send(MappedOf(lease_, 0));
    const uint64_t epoch = ipc::LookAtGate(gate_.cells()).epoch();
    gate_.cells().word =
        ipc::GateWord(ipc::GateState::kParked, 0, epoch + 1).bits();
    At("parked");
    return absl::OkStatus();
  }

  absl::Status Leave() {
    const auto evict = Await(&v1::BrokerMessage::has_evict);
    if (!evict.has_value()) return absl::DeadlineExceededError("no Evict");
    At("evict_received");
    slabs_.clear();
    v1::ClientMessage unmapped;
    unmapped.mutable_unmapped()->set_lease_id(lease_);
    unmapped.mutable_unmapped()->set_move(evict->evict().move());
    stream_.Send(unmapped);
    At("unmapped_sent");
    return absl::OkStatus();
  }

  absl::Status ComeBack() {
    v1::ClientMessage restore;
    restore.mutable_restore()->mutable_wait()->set_seconds(60);
    stream_.Send(restore);
    At("restore_sent");
    const auto map = Await(&v1::BrokerMessage::has_map);
    if (!map.has_value()) return absl::DeadlineExceededError("no Map");
    At("map_received");
    const absl::Status taken = Take(map->map().slabs());
    if (!taken.ok()) return taken;
    At("slabs_taken");
    stream_.Send(MappedOf(lease_, map->map().move()));
    At("mapped_again");
    return absl::OkStatus();
  }

  absl::Status Take(uint32_t count) {
    auto slabs = TakeSlabs(session_.socket(), count);
    if (!slabs.ok()) return slabs.status();
    slabs_ = *std::move(slabs);
    for (const Slab& slab : slabs_) std::memset(slab.at, 0x66, slab.bytes);
    return absl::OkStatus();
  }

  // The next message of that kind; others are dropped.
  std::optional<v1::BrokerMessage> Await(bool (v1::BrokerMessage::*kind)()
                                             const) {
    for (auto message = stream_.Receive(kMovePatience); message.has_value();
         message = stream_.Receive(kMovePatience)) {
      if ((*message.*kind)()) return message;
    }
    return std::nullopt;
  }

  void At(const std::string& step) const { HaltAt(options_, step); }

  const AttackOptions& options_;
  OwnSession session_;
  const ipc::GatePage gate_;
  HandStream stream_;
  uint64_t lease_ = 0;
  std::vector<Slab> slabs_;
};

}  // namespace

absl::Status HaltsInMoves(Attack& attack) {
  absl::StatusOr<OwnSession> session =
      OwnSession::Greet(attack.options().socket_dir);
  if (!session.ok()) return session.status();
  absl::StatusOr<ipc::GatePage> gate =
      ipc::GatePage::Map(session->gate().get());
  if (!gate.ok()) return gate.status();
  return MovedLife(attack.options(), *std::move(session), *std::move(gate))
      .Live();
}

}  // namespace gmb::attack
