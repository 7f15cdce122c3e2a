#include "tests/broker/machine/machine_fixture.h"

#include <algorithm>
#include <utility>

#include "ipc/gate_word.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

std::string NameOf(const v1::BrokerMessage& answer) {
  switch (answer.kind_case()) {
    case v1::BrokerMessage::kGrant:
      return answer.grant().attached() ? "attached" : "granted";
    case v1::BrokerMessage::kReleased:
      return "released";
    case v1::BrokerMessage::kError:
      return v1::ErrorReason_Name(answer.error().detail().reason());
    case v1::BrokerMessage::kQuotaReport:
      return "report";
    case v1::BrokerMessage::kGateSet:
      return "gate set";
    case v1::BrokerMessage::kRestored:
      return "restored";
    case v1::BrokerMessage::kSealed:
      return "sealed";
    case v1::BrokerMessage::kDropped:
      return "dropped";
    default:
      return "nothing";
  }
}

uint64_t LeaseOf(const v1::BrokerMessage& move) {
  return move.has_evict() ? move.evict().lease_id() : move.map().lease_id();
}

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  if (status.ok()) return "OK";
  const auto detail = proto::GetErrorDetail(status);
  return detail.has_value() ? v1::ErrorReason_Name(detail->reason())
                            : status.ToString();
}

google::protobuf::Duration ToDuration(quota::Nanoseconds time) {
  google::protobuf::Duration duration;
  duration.set_seconds(time.count() / 1'000'000'000);
  duration.set_nanos(static_cast<int32_t>(time.count() % 1'000'000'000));
  return duration;
}

namespace {

MachineOptions Recorded(MachineOptions options) {
  options.recorded = true;
  return options;
}

}  // namespace

MachineFixture::MachineFixture(const MachineWorld& shape)
    : world(Recorded(shape.options), shape.pools, shape.granules * kGranule,
            shape.host_granules * kGranule, shape.others_granules * kGranule,
            shape.kind) {}

// --- Operators.

absl::StatusOr<std::vector<v1::Change>> MachineFixture::TrySetTenant(
    const std::string& name, const Terms& terms) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota = {quota::Amount::Bytes(terms.guarantee * kGranule),
                  terms.limit.has_value()
                      ? quota::Amount::Bytes(*terms.limit * kGranule)
                      : quota::Amount::Fraction(terms.share),
                  terms.weight};
  policy.max_handles = terms.max_handles;
  policy.max_sessions = terms.max_sessions;
  policy.reclaim.may_terminate = terms.may_terminate;
  policy.reclaim.min_residency = terms.min_residency;
  policy.reclaim.pause_grace = terms.pause_grace;
  if (terms.host_limit.has_value()) {
    policy.reclaim.host_limit =
        quota::Amount::Bytes(*terms.host_limit * kGranule);
  }
  absl::StatusOr<std::vector<v1::Change>> changes =
      absl::InternalError("not done");
  world.Do("set tenant", name, [&](Turn& turn) {
    changes = world.machine().operators().SetTenant(policy, turn);
  });
  return changes;
}

v1::Change MachineFixture::SetTenant(const std::string& name,
                                     const Terms& terms) {
  const auto changes = TrySetTenant(name, terms);
  EXPECT_TRUE(changes.ok()) << name << ": " << changes.status();
  return changes.ok() ? changes->front() : v1::Change();
}

absl::StatusOr<v1::Change> MachineFixture::Resize(uint64_t granules) {
  absl::StatusOr<v1::Change> change = absl::InternalError("not done");
  world.Do("resize", [&](Turn& turn) {
    change = world.machine().operators().ResizePool(
        "sim-1", quota::Amount::Bytes(granules * kGranule), turn);
  });
  return change;
}

absl::StatusOr<uint64_t> MachineFixture::Drain(bool draining,
                                               const std::string& device) {
  absl::StatusOr<uint64_t> leased = absl::InternalError("not done");
  world.Do("drain", [&](Turn& turn) {
    leased = world.machine().operators().DrainPool(device, draining, turn);
  });
  return leased;
}

std::shared_ptr<MachineFixture::Reclaimed> MachineFixture::Reclaim(
    const std::string& tenant, const ReclaimWish& wish) {
  v1::ReclaimRequest request;
  request.set_tenant(tenant);
  request.set_device(wish.device);
  request.set_bytes(wish.granules * kGranule);
  request.set_to(wish.to);
  *request.mutable_wait() = ToDuration(wish.wait);
  auto answer = std::make_shared<Reclaimed>();
  world.Do("reclaim", tenant, [&](Turn& turn) {
    const absl::Status started = world.machine().operators().StartReclaim(
        request,
        [answer](const absl::StatusOr<v1::ReclaimResponse>& response) {
          EXPECT_FALSE(answer->has_value()) << "it is answered once";
          *answer = response;
        },
        turn);
    if (!started.ok()) *answer = started;
  });
  return answer;
}

std::shared_ptr<MachineFixture::Departed> MachineFixture::Depart(
    const std::string& tenant, quota::Nanoseconds wait) {
  auto answer = std::make_shared<Departed>();
  world.Do("see off", tenant, [&](Turn& turn) {
    const absl::Status started = world.machine().operators().StartDeparture(
        tenant, wait,
        [answer](const absl::Status& done) {
          EXPECT_FALSE(answer->has_value()) << "it is answered once";
          *answer = done;
        },
        turn);
    if (!started.ok()) *answer = started;
  });
  return answer;
}

absl::Status MachineFixture::Delete(const std::string& tenant) {
  absl::Status status;
  world.Do("delete tenant", tenant, [&](Turn& turn) {
    status = world.machine().operators().DeleteTenant(tenant, turn);
  });
  return status;
}

absl::StatusOr<uint32_t> MachineFixture::DropLease(const std::string& tenant,
                                                   const std::string& name) {
  absl::StatusOr<uint32_t> attached = absl::InternalError("not done");
  world.Do("drop lease", name, [&](Turn& turn) {
    attached = world.machine().operators().DropLease(tenant, name, turn);
  });
  return attached;
}

// --- Clients.

PeerIdentity MachineFixture::PeerOf(const std::string& tenant) {
  PeerIdentity peer;
  peer.origin = Origin::kTenantDirectory;
  peer.tenant_directory = tenant;
  peer.pid = world.NextPid();
  peer.program = "test";
  peer.pidfd = std::make_shared<const base::UniqueFd>();
  return peer;
}

SimClient* MachineFixture::Connect(const std::string& tenant) {
  const absl::StatusOr<SimClient*> client = world.Open(PeerOf(tenant));
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *client : nullptr;
}

SimClient* MachineFixture::Parked(const std::string& tenant,
                                  const std::string& group) {
  SimClient* client = Connect(tenant);
  Park(client);
  EXPECT_EQ(Outcome(client, SetGate(client, true, group)), "gate set");
  return client;
}

SimClient* MachineFixture::Active(const std::string& tenant,
                                  const std::string& group) {
  SimClient* client = Parked(tenant, group);
  EXPECT_TRUE(Enter(client));
  return client;
}

void MachineFixture::Park(SimClient* client) {
  const ipc::GateWord word = GateOf(client);
  client->cells->word.store(
      ipc::GateWord(ipc::GateState::kParked, 0, word.epoch(), word.paused())
          .bits());
}

bool MachineFixture::Enter(SimClient* client) {
  const auto next = ipc::AfterEnter(GateOf(client));
  if (next.has_value()) client->cells->word.store(next->bits());
  return next.has_value();
}

uint64_t MachineFixture::Send(SimClient* client, v1::ClientMessage message) {
  const uint64_t id = ++client->last_request;
  message.set_request_id(id);
  world.Send(client, std::move(message));
  return id;
}

uint64_t MachineFixture::Ask(SimClient* client, uint64_t granules,
                             const Wish& wish) {
  v1::ClientMessage message;
  v1::Acquire& acquire = *message.mutable_acquire();
  acquire.set_bytes(granules * kGranule);
  acquire.set_device(wish.device);
  acquire.set_contents(wish.contents);
  *acquire.mutable_wait() = ToDuration(wish.wait);
  acquire.set_share_as(wish.share_as);
  acquire.set_keep(wish.keep);
  return Send(client, message);
}

quota::LeaseId MachineFixture::Lease(SimClient* client, uint64_t granules,
                                     const Wish& wish) {
  const uint64_t id = Ask(client, granules, wish);
  RunDevice();
  EXPECT_EQ(Outcome(client, id), "granted");
  const quota::LeaseId lease{AnswerTo(client, id).grant().lease_id()};
  if (!wish.share_as.empty()) {
    EXPECT_EQ(Outcome(client, Seal(client, lease)), "sealed");
  }
  return lease;
}

uint64_t MachineFixture::Release(SimClient* client, quota::LeaseId lease) {
  const auto held = client->leases.find(lease.value);
  if (held != client->leases.end()) {
    if (held->second.mapped) world.HoldSlabs(held->second, false);
    client->leases.erase(held);
  }
  std::erase_if(client->moves, [&](const v1::BrokerMessage& move) {
    return LeaseOf(move) == lease.value;
  });
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease.value);
  return Send(client, message);
}

void MachineFixture::Cancel(SimClient* client, uint64_t request) {
  v1::ClientMessage message;
  message.mutable_cancel()->set_acquire_request_id(request);
  Notify(client, message);
}

uint64_t MachineFixture::SetGate(SimClient* client, bool on,
                                 const std::string& group) {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(on);
  message.mutable_set_gate()->set_group(group);
  return Send(client, message);
}

uint64_t MachineFixture::Restore(SimClient* client, quota::Nanoseconds wait) {
  v1::ClientMessage message;
  *message.mutable_restore()->mutable_wait() = ToDuration(wait);
  return Send(client, message);
}

uint64_t MachineFixture::Seal(SimClient* client, quota::LeaseId lease) {
  v1::ClientMessage message;
  message.mutable_seal()->set_lease_id(lease.value);
  return Send(client, message);
}

uint64_t MachineFixture::Attach(SimClient* client, const std::string& name,
                                quota::Nanoseconds wait) {
  v1::ClientMessage message;
  message.mutable_attach()->set_name(name);
  *message.mutable_attach()->mutable_wait() = ToDuration(wait);
  return Send(client, message);
}

uint64_t MachineFixture::Drop(SimClient* client, const std::string& name) {
  v1::ClientMessage message;
  message.mutable_drop()->set_name(name);
  return Send(client, message);
}

void MachineFixture::SetTrimmable(SimClient* client, uint64_t granules) {
  v1::ClientMessage message;
  auto* on = message.mutable_set_trimmable()->add_devices();
  on->set_device("sim-1");
  on->set_bytes(granules * kGranule);
  Notify(client, message);
}

void MachineFixture::Trimmed(SimClient* client, bool busy) {
  v1::ClientMessage message;
  message.mutable_trimmed()->set_trim(client->trim);
  message.mutable_trimmed()->set_busy(busy);
  client->trim = 0;
  Notify(client, message);
}

void MachineFixture::Follow(SimClient* client) {
  while (!client->moves.empty()) {
    const v1::BrokerMessage move = client->moves.front();
    client->moves.pop_front();
    const auto known = client->leases.find(LeaseOf(move));
    if (known == client->leases.end()) continue;  // released meanwhile
    SimLease& lease = known->second;
    if (lease.mapped) world.HoldSlabs(lease, false);
    v1::ClientMessage message;
    if (move.has_evict()) {
      message.mutable_unmapped()->set_lease_id(known->first);
      message.mutable_unmapped()->set_move(move.evict().move());
    } else {
      message.mutable_mapped()->set_lease_id(known->first);
      message.mutable_mapped()->set_move(move.map().move());
      lease.slabs = client->packets[{0, move.map().move()}];
      world.HoldSlabs(lease, true);
    }
    lease.mapped = move.has_map();
    world.Send(client, message);
  }
}

void MachineFixture::RefuseMoves(SimClient* client, const std::string& why) {
  v1::Error error;
  error.set_code(13);
  error.set_message(why);
  while (!client->moves.empty()) {
    const v1::BrokerMessage move = client->moves.front();
    client->moves.pop_front();
    v1::ClientMessage message;
    if (move.has_evict()) {
      message.mutable_unmapped()->set_lease_id(move.evict().lease_id());
      message.mutable_unmapped()->set_move(move.evict().move());
      *message.mutable_unmapped()->mutable_error() = error;
    } else {
      message.mutable_mapped()->set_lease_id(move.map().lease_id());
      message.mutable_mapped()->set_move(move.map().move());
      *message.mutable_mapped()->mutable_error() = error;
    }
    world.Send(client, message);
  }
}

void MachineFixture::NewStream(SimClient* client) {
  world.Do("stream", [&](Turn& turn) {
    world.machine().sessions().OnStream(client->session, turn);
  });
}

v1::BrokerMessage MachineFixture::AnswerTo(const SimClient* client,
                                           uint64_t request) {
  const auto answer = std::find_if(client->said.rbegin(), client->said.rend(),
                                   [&](const v1::BrokerMessage& message) {
                                     return message.request_id() == request &&
                                            !message.has_waiting();
                                   });
  return answer == client->said.rend() ? v1::BrokerMessage() : *answer;
}

std::string MachineFixture::Outcome(const SimClient* client, uint64_t request) {
  const std::string name = NameOf(AnswerTo(client, request));
  const bool waits = std::any_of(client->said.begin(), client->said.end(),
                                 [&](const v1::BrokerMessage& message) {
                                   return message.request_id() == request;
                                 });
  return name == "nothing" && waits ? "waits" : name;
}

size_t MachineFixture::Told(const SimClient* client,
                            v1::BrokerMessage::KindCase kind) {
  return static_cast<size_t>(
      std::count_if(client->said.begin(), client->said.end(),
                    [&](const v1::BrokerMessage& message) {
                      return message.kind_case() == kind;
                    }));
}

// --- The world.

int MachineFixture::FailCreatesUntilAnswered(const SimClient* client,
                                             uint64_t request) {
  int attempts = 0;
  while (Outcome(client, request) == "nothing" && attempts < 50) {
    ++attempts;
    world.device(kPool).FailNextCreate(absl::InternalError("the bus"));
    world.StepDevice(kPool);
  }
  return attempts;
}

void MachineFixture::RunDevice() {
  for (const quota::PoolId pool : world.pools()) {
    while (world.StepDevice(pool)) {
    }
  }
}

void MachineFixture::RunCopies(bool fail) {
  while (world.StepCopy(/*out=*/true, fail) ||
         world.StepCopy(/*out=*/false, fail)) {
  }
}

void MachineFixture::Work() {
  for (bool busy = true; busy && world.problem().empty();) {
    RunDevice();
    busy = world.StepCopy(/*out=*/true, false) ||
           world.StepCopy(/*out=*/false, false);
    for (SimClient* client : world.clients()) {
      if (client->ended) {
        ++killed;
        End(client);
      } else if (!stubborn.contains(client)) {
        busy |= !client->moves.empty();
        Follow(client);
      }
    }
  }
}

void MachineFixture::RunFor(quota::Nanoseconds time) {
  const quota::Instant end = world.now() + time;
  Work();
  while (world.now() < end && world.problem().empty()) {
    const quota::Instant due =
        std::max(world.machine().NextDue(world.now()),
                 world.now() + std::chrono::milliseconds(1));
    world.Advance(std::min(end, due) - world.now());
    Work();
  }
}

void MachineFixture::Write(SimClient* client, quota::LeaseId lease,
                           uint64_t first) {
  for (const SimSlab& slab : client->leases.at(lease.value).slabs) {
    for (uint64_t& granule : world.Bytes(slab)) granule = first++;
  }
}

std::vector<uint64_t> MachineFixture::Read(SimClient* client,
                                           quota::LeaseId lease) {
  std::vector<uint64_t> all;
  for (const SimSlab& slab : client->leases.at(lease.value).slabs) {
    const std::vector<uint64_t>& bytes = world.Bytes(slab);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

// --- Things that can be seen.

std::string MachineFixture::Where(quota::LeaseId lease) const {
  const auto found = state().leases->find(lease);
  if (found == state().leases->end()) return "gone";
  switch (found->second->move->residence) {
    case Residence::kResident:
      return "mapped";
    case Residence::kEvicting:
      return "evicting";
    case Residence::kEvicted:
      return "evicted";
    case Residence::kRestoring:
      return "restoring";
  }
  return "";
}

quota::LeaseView MachineFixture::LeaseView(quota::LeaseId lease) const {
  return *state().engine->Lease(lease);
}

quota::LeaseId MachineFixture::TheLease() const {
  EXPECT_EQ(state().leases->size(), 1u);
  return state().leases->begin()->first;
}

quota::TenantId MachineFixture::IdOf(const std::string& tenant) const {
  return state().tenants->Find(tenant)->id;
}

quota::TenantPoolView MachineFixture::Of(const std::string& tenant,
                                         quota::PoolId pool) const {
  return *state().engine->TenantPool(IdOf(tenant), pool);
}

quota::PoolView MachineFixture::InPool(quota::PoolId pool) const {
  return *state().engine->Pool(pool);
}

Composition MachineFixture::Parts(quota::PoolId pool) const {
  return state().PoolAt(pool).slabs->composition();
}

uint64_t MachineFixture::HeadroomLeft() const {
  return state().PoolAt(kPool).headroom_left_bytes();
}

const Look& MachineFixture::LookAt() const {
  return state().PoolAt(kPool).plan->look;
}

HostBooks::Amounts MachineFixture::InHostPool(const std::string& tenant) const {
  return state().host_books->of(IdOf(tenant));
}

std::vector<v1::Event> MachineFixture::Events(const std::string& kind) const {
  std::vector<v1::Event> those;
  for (const v1::Event& event : world.events) {
    if (event.kind() == kind) those.push_back(event);
  }
  return those;
}

}  // namespace gmb::broker
