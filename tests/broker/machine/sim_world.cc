#include "tests/broker/machine/sim_world.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "tests/broker/machine/machine_invariants.h"

namespace gmb::broker {
namespace {

// Of what was said and done last, for a failure.
size_t LinesKept() {
  const char* lines = std::getenv("GMB_MACHINE_LINES");
  return lines == nullptr ? 400 : std::strtoull(lines, nullptr, 10);
}

std::string TextOf(const google::protobuf::Message& message) {
  return message.ShortDebugString();
}

std::string KindOf(const v1::ClientMessage& message) {
  const google::protobuf::FieldDescriptor* kind =
      message.GetReflection()->GetOneofFieldDescriptor(
          message, message.GetDescriptor()->FindOneofByName("kind"));
  return kind == nullptr ? "empty message" : kind->name();
}

bool Waits(const v1::ClientMessage& message) {
  return message.has_acquire() || message.has_attach() || message.has_restore();
}

}  // namespace

SimWorld::SimWorld(const MachineOptions& options, uint64_t pools,
                   uint64_t pool_bytes, uint64_t host_pool_bytes,
                   uint64_t others_bytes, device::DeviceKind kind,
                   uint64_t max_ready_tails, uint64_t least_standing_bytes)
    : machine_(std::make_unique<Machine>(options, host_pool_bytes)),
      host_pool_bytes_(host_pool_bytes) {
  for (uint64_t i = 1; i <= pools; ++i) {
    const std::string uuid = absl::StrCat("sim-", i);
    // Some more than the pool, as a headroom.
    auto allocator = std::make_unique<SimAllocator>(
        uuid, pool_bytes + pool_bytes / 8, kGranule, kind);
    allocator->SetOutside(others_bytes);
    SimDevice device;
    device.allocator = allocator.get();
    device.tasks =
        *DeviceTasks::Create(std::move(allocator), &keeper_, &slab_ids_);
    SlabPool::Options slabs = SlabPool::DefaultOptions(pool_bytes, kGranule);
    slabs.one_slab_a_lease = kind == device::DeviceKind::kIpc;
    slabs.max_ready_tails = max_ready_tails;
    slabs.least_standing_bytes = least_standing_bytes;
    const NewPool pool{
        .info = device.tasks->info(),
        .baseline_bytes = device.tasks->baseline_bytes(),
        .has_copier = kind != device::DeviceKind::kIpc && host_pool_bytes > 0,
        .target_bytes = pool_bytes - others_bytes,
        .wanted = quota::Amount::Fraction(1),
        .share_of_bytes = pool_bytes - others_bytes,
        .slabs = slabs};
    devices_.emplace(quota::PoolId{i}, std::move(device));
    Do("add pool", [&](Turn& turn) {
      Expect(machine_->operators().AddPool(pool, turn).ok(),
             "the pool was not added");
    });
  }
}

std::vector<quota::PoolId> SimWorld::pools() const {
  std::vector<quota::PoolId> ids;
  for (const auto& [id, device] : devices_) ids.push_back(id);
  return ids;
}

void SimWorld::Note(const std::string& line) {
  for (const char c : line)
    trace_sum_ = (trace_sum_ ^ static_cast<uint8_t>(c)) * 1099511628211u;
  last_lines_.push_back(line);
  if (last_lines_.size() > LinesKept()) last_lines_.pop_front();
}

void SimWorld::Check() {
  if (!problem_.empty()) return;
  if (++turns_ % check_every_ != 0) return refused_.clear();
  problem_ = WhatIsWrong(machine_->state(), now_);
  CheckRecords();
  if (!problem_.empty()) return;
  // All that wait ask again: what would be done now had been forgotten.
  Turn turn(now_, absl::FromUnixNanos(now_.ns));
  Machine copy(*machine_);
  MachineProbe::AskAgain(&copy, turn);
  for (const Effect& effect : turn.TakeEffects()) {
    const auto* say = std::get_if<Say>(&effect);
    Expect(false, absl::StrCat("a wake-up was lost: asked again, effect ",
                               effect.index(), " follows ",
                               say == nullptr ? "" : TextOf(say->message)));
  }
  AskForWhatWasRefused();
}

// At its deadline a request is refused only if it would be refused now as well.
// Of several in one turn that holds of the last: until it was refused, it kept
// back the others.
void SimWorld::AskForWhatWasRefused() {
  const auto refused = std::exchange(refused_, {});
  if (refused.empty()) return;
  const auto& [session, message] = refused.back();
  ++events_of_kind[KindOf(message) + ", made again"];
  Turn turn(now_, absl::FromUnixNanos(now_.ns));
  Machine copy(*machine_);
  const std::string differs =
      MachineProbe::AskOnceMore(&copy, session, message, turn);
  Expect(differs.empty(),
         absl::StrCat("a request was refused, and made again at once ", differs,
                      ": session=", session, " ", TextOf(message)));
}

void SimWorld::Tick() {
  ticking_ = true;
  Do("tick", [this](Turn& turn) { machine_->Tick(turn); });
  ticking_ = false;
}

void SimWorld::Advance(quota::Nanoseconds by) {
  now_ = now_ + by;
  Tick();
}

void SimWorld::AdvanceToDue() {
  const quota::Instant due = machine_->NextDue(now_);
  if (due == quota::Instant::Max()) return;
  now_ = std::max(now_, due);
  Tick();
}

bool SimWorld::StepDevice(quota::PoolId pool) {
  SimDevice& device = devices_.at(pool);
  if (device.jobs.empty()) return false;
  DeviceJob job = std::move(device.jobs.front());
  device.jobs.pop_front();
  const DeviceResult result = device.tasks->Do(std::move(job));
  for (const Slab& slab : result.created) made_[slab.id] = {pool, slab};
  Do("device result",
     absl::StrCat(pool.value, " ", result.job.index(), " ",
                  result.created.size(), " ", result.status.message()),
     [&](Turn& turn) { machine_->OnDeviceResult(pool, result, turn); });
  return true;
}

bool SimWorld::StepCopy(bool out, bool fail) {
  const auto wanted =
      out ? device::CopyDirection::kOut : device::CopyDirection::kIn;
  const auto next = std::find_if(
      copies_.begin(), copies_.end(),
      [&](const CopySlab& copy) { return copy.direction == wanted; });
  if (next == copies_.end()) return false;
  const CopySlab copy = *next;
  copies_.erase(next);
  absl::Status status;
  if (cancelled_.contains(copy.group)) {
    status = absl::CancelledError("cancelled");
  } else if (fail) {
    status = absl::InternalError("the copy failed");
  } else {
    uint64_t bytes = 0;
    for (const device::HostExtent& extent : copy.room) bytes += extent.bytes;
    Expect(bytes == copy.slab_bytes, "a room that is not as large as its slab");
    Expect(IsAlive(copy.pool, copy.slab), "a copy of a slab that is gone");
    CopyBytes(copy, out);
  }
  Do("copied", absl::StrCat("lease ", copy.lease.value, " ", status.message()),
     [&](Turn& turn) { machine_->OnCopied(copy.lease, status, turn); });
  return true;
}

SimClient* SimWorld::Find(uint64_t session) {
  const auto client = clients_.find(session);
  return client == clients_.end() ? nullptr : client->second.get();
}

std::vector<SimClient*> SimWorld::clients() {
  std::vector<SimClient*> all;
  for (const auto& [session, client] : clients_) all.push_back(client.get());
  return all;
}

SimClient* SimWorld::Connect(const std::string& tenant) {
  PeerIdentity peer;
  peer.origin = Origin::kTenantDirectory;
  peer.tenant_directory = tenant;
  peer.pid = NextPid();
  peer.program = "sim";
  if (peer.pid % 5 != 0) peer.pidfd = std::make_shared<const base::UniqueFd>();
  const absl::StatusOr<SimClient*> client = Open(peer);
  return client.ok() ? *client : nullptr;
}

absl::StatusOr<SimClient*> SimWorld::Open(const PeerIdentity& peer) {
  auto client = std::make_unique<SimClient>();
  client->pid = peer.pid;
  client->process = peer.pidfd;
  client->token = absl::StrCat("token-", ++last_token_);
  absl::StatusOr<SimClient*> connected = absl::InternalError("not connected");
  uint64_t session = 0;
  Do("connect", peer.tenant_directory, [&](Turn& turn) {
    std::unique_ptr<SessionGate> gate;
    if (peer.origin != Origin::kAdmin) {
      client->cells = std::make_shared<ipc::GateCells>();
      client->cells->word.store(ipc::kGateOff.bits());
      client->cells->left_at_ns.store(0);
      gate = std::make_unique<SessionGate>(client->cells, now_);
    }
    const absl::StatusOr<Welcome> welcome =
        machine_->OpenSession(peer, client->token, std::move(gate), turn);
    if (!welcome.ok()) {
      connected = welcome.status();
      return;
    }
    client->session = session = welcome->session;
    client->tenant = welcome->tenant;
    client->welcome = *welcome;
    connected = client.get();
    clients_.emplace(welcome->session, std::move(client));
    machine_->sessions().OnStream(welcome->session, turn);
  });
  // The broker that it greeted died of it, and had not written it down.
  if (connected.ok() && Find(session) == nullptr)
    return absl::UnavailableError("the broker died");
  return connected;
}

void SimWorld::Close(SimClient* client, const std::string& why) {
  const uint64_t session = client->session;
  // The broker of that time finds its process dead.
  const auto gone = clients_.extract(session);
  for (const auto& [id, lease] : client->leases) {
    if (lease.mapped) HoldSlabs(lease, false);
  }
  Do("close", absl::StrCat(session),
     [&](Turn& turn) { machine_->CloseSession(session, why, turn); });
}

void SimWorld::Send(SimClient* client, v1::ClientMessage message) {
  const uint64_t session = client->session;
  if (Waits(message)) client->asked[message.request_id()] = message;
  Do(KindOf(message), absl::StrCat("session ", session, ": ", TextOf(message)),
     [&](Turn& turn) { machine_->HandleMessage(session, message, turn); });
  if (last_fate_ == Fate::kLives || last_fate_ == Fate::kDiesOnceItIsCarriedOut)
    return;
  // It was not answered. Those that can wait were asked again with the stream.
  if (Find(session) == nullptr || Waits(message)) return;
  restarting_ = true;
  Do("said again", TextOf(message),
     [&](Turn& turn) { machine_->HandleMessage(session, message, turn); });
  restarting_ = false;
}

void SimWorld::End(Turn* turn, Fate fate) {
  const RecordChanges records = turn->TakeRecords();
  for (const LeaseRecord& lease : records.leases)
    Note(absl::StrCat("record ", lease.id));
  if (fate != Fate::kDiesBeforeItIsRecorded) book_.Apply(records);
  std::vector<Effect> effects = turn->TakeEffects();
  if (fate == Fate::kLives || fate == Fate::kDiesOnceItIsCarriedOut) {
    Deliver(std::move(effects));
  } else {
    AnswerOperators(std::move(effects));
  }
  last_fate_ = fate;
  if (fate != Fate::kLives) Restart();
}

std::vector<uint64_t>& SimWorld::Bytes(const SimSlab& slab) {
  std::vector<uint64_t>& bytes = device_bytes_[slab.id];
  bytes.resize(slab.bytes / kGranule);
  return bytes;
}

void SimWorld::CopyBytes(const CopySlab& copy, bool out) {
  std::vector<uint64_t>& bytes = Bytes({copy.slab, copy.slab_bytes, 0});
  size_t granule = 0;
  for (const device::HostExtent& extent : copy.room) {
    for (uint64_t at = 0; at < extent.bytes; at += kGranule, ++granule) {
      uint64_t& host = host_bytes_[extent.offset + at];
      out ? host = bytes[granule] : bytes[granule] = host;
    }
  }
}

bool SimWorld::IsAlive(quota::PoolId pool, SlabId slab) const {
  const SharedHandle handle = keeper_.Get(slab);
  return handle != nullptr &&
         devices_.at(pool).allocator->IsAlive(SimAllocator::KeyOf(*handle));
}

void SimWorld::HoldSlabs(const SimLease& lease, bool hold) {
  SimAllocator& allocator = *devices_.at(lease.pool).allocator;
  for (const SimSlab& slab : lease.slabs) {
    hold ? allocator.Hold(slab.key) : allocator.LetGo(slab.key);
  }
}

void SimWorld::Deliver(std::vector<Effect> effects) {
  Expect(effects.size() <= kMostEffects, "a turn of too many effects");
  for (Effect& effect : effects)
    std::visit([this](auto& one) { Put(std::move(one)); }, effect);
  // The process is dead before anything else happens.
  for (const auto& process : std::exchange(killed_, {})) {
    for (SimClient* client : clients()) {
      if (client->process == process) client->ended = true;
    }
  }
}

void SimWorld::Put(const Say& say) {
  Note(absl::StrCat("say ", say.session, " ", TextOf(say.message)));
  SimClient* client = Find(say.session);
  if (client == nullptr) return;
  const v1::BrokerMessage& message = say.message;
  client->said.push_back(message);
  const uint64_t request = message.request_id();
  if (message.has_evict() || message.has_map()) {
    // Repeated on a new stream; clients know moves by their numbers.
    const uint64_t move =
        message.has_evict() ? message.evict().move() : message.map().move();
    if (move > client->last_move) client->moves.push_back(message);
    client->last_move = std::max(client->last_move, move);
  } else if (message.has_trim()) {
    client->trim = message.trim().trim();
  } else if (message.has_grant()) {
    const uint64_t id = message.grant().lease_id();
    const bool again = std::exchange(client->granted_by[request], id) == id;
    SimLease lease;
    lease.pool = state().FindPool(message.grant().device())->id;
    lease.slabs = client->packets[{request, 0}];
    client->packets.erase({request, 0});
    // The Grant alone is said again: the slabs are on the other socket, which
    // lives as long as the session.
    Expect(lease.slabs.size() == message.grant().slabs() ||
               (again && lease.slabs.empty()),
           "a grant without all of its slabs before it");
    if (again) return (void)client->asked.erase(request);
    // Of a lease that it has.
    if (!message.grant().export_key().empty()) return;
    const v1::ClientMessage asked = client->asked[request];
    client->asked.erase(request);
    if (asked.has_acquire()) {
      lease.contents = asked.acquire().contents();
      lease.name = asked.acquire().share_as();
    } else {
      lease.reader = true;
      lease.name = asked.attach().name();
      ++client->attached;
    }
    HoldSlabs(lease, true);
    ++client->granted;
    Expect(client->leases.emplace(id, lease).second,
           "a lease was granted twice");
  } else if (message.has_error() || message.has_restored()) {
    const auto asked = client->asked.find(request);
    if (asked != client->asked.end()) {
      // A client that wrote over its gate is told so once, with its group; from
      // then on the gate counts as open.
      const bool once = absl::StrContains(message.error().message(),
                                          "breaks the gate's rules");
      if (ticking_ && message.has_error() && !once)
        refused_.emplace_back(say.session, asked->second);
      client->asked.erase(asked);
    }
    client->restored += message.has_restored() ? 1 : 0;
  }
}

void SimWorld::Put(const SendSlabs& send) {
  Note(absl::StrCat("slabs ", send.session, " ", TextOf(send.packet)));
  SimClient* client = Find(send.session);
  if (client == nullptr) return;
  client->frames.push_back(send.packet);
  std::vector<SimSlab>& slabs =
      client->packets[{send.packet.request_id(), send.packet.move()}];
  if (send.packet.first_slab() == 0) slabs.clear();  // sent again
  for (size_t i = 0; i < send.slabs.size(); ++i) {
    const SharedHandle handle = keeper_.Get(send.slabs[i]);
    Expect(handle != nullptr, "a slab was sent that is not kept");
    if (handle == nullptr) continue;
    slabs.push_back({send.slabs[i], send.packet.slab_bytes(static_cast<int>(i)),
                     SimAllocator::KeyOf(*handle)});
  }
}

void SimWorld::Put(const ExpectMoves& moves) {
  Note(absl::StrCat("expect ", moves.session, " ", moves.leases));
}

void SimWorld::Put(const HangUp& hang_up) {
  Note(absl::StrCat("hang up ", hang_up.session));
  hung_up[hang_up.session] = hang_up.status;
}

void SimWorld::Put(Give give) {
  Note(absl::StrCat("give ", give.pool.value, " ", give.job.index()));
  devices_.at(give.pool).jobs.push_back(std::move(give.job));
}

void SimWorld::Put(const CopySlab& copy) {
  Note(
      absl::StrCat("copy ", copy.lease.value, " ", copy.slab, " ", copy.group));
  Expect(keeper_.Get(copy.slab) != nullptr, "a copy of a slab that is gone");
  // Its cancel would have come before it.
  Expect(!cancelled_.contains(copy.group), "a copy of a cancelled group");
  copies_.push_back(copy);
  ++(copy.direction == device::CopyDirection::kOut ? copies_out : copies_in);
}

void SimWorld::Put(const CancelCopies& cancel) {
  Note(absl::StrCat("cancel ", cancel.group));
  cancelled_.insert(cancel.group);
}

void SimWorld::Put(const Kill& kill) {
  Note("kill");
  killed_.push_back(kill.process);
  Put(Publish{kill.event});
}

void SimWorld::Put(const Reply& reply) {
  Note("reply");
  reply.call();
  ++replies;
}

void SimWorld::Put(const Publish& publish) {
  v1::Event event = publish.event;
  event.clear_at();
  Note(absl::StrCat("event ", TextOf(event)));
  // Memory that leaves the device later in the turn is for the next that asks.
  if (event.kind() == "evicted" || event.kind() == "lease_reclaimed")
    refused_.clear();
  events.push_back(std::move(event));
}

void SimWorld::SilenceKeeper(bool silent) {
  keeper_.SetSilent(silent);
  if (silent) return;
  for (const auto& [pool, key] : std::exchange(kept_, {}))
    device(pool).LetGo(key);
}

void SimWorld::KeepRemoved(SlabId slab) {
  const auto& [pool, made] = made_.at(slab);
  device(pool).Hold(made.key);
  kept_.emplace_back(pool, made.key);
}

void SimWorld::RunOut() {
  for (int round = 0; round < 4000 && problem_.empty(); ++round) {
    bool busy = false;
    for (const quota::PoolId pool : pools()) busy |= StepDevice(pool);
    busy |= StepCopy(true, false);
    busy |= StepCopy(false, false);
    if (!busy) Advance(std::chrono::milliseconds(100));
    if (!busy && state().leases->empty() && copies_.empty()) break;
  }
  for (int i = 0; i < 20; ++i) {
    Advance(std::chrono::seconds(2));
    for (const quota::PoolId pool : pools()) {
      while (StepDevice(pool)) {
      }
    }
  }
}

}  // namespace gmb::broker
