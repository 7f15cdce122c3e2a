#include "tests/broker/machine/machine_interpreter.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/broker/machine/machine_invariants.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kMiB = SimWorld::kMiB;
constexpr size_t kClients = 7;
const char* const kTenants[] = {"a", "b", "c"};
const char* const kNames[] = {"x", "y"};

MachineOptions OptionsOf(uint64_t seed) {
  MachineOptions options;
  options.recorded = true;
  options.max_handles = 256;
  options.max_sessions = 12;
  options.most_ends_at_once = 2;
  options.max_requests_per_session = 6;
  options.fill_ahead_bytes = 4 * kMiB;
  options.planner.unmap_grace = std::chrono::milliseconds(200);
  options.planner.kill_grace = std::chrono::milliseconds(300);
  options.planner.lend_parked_guarantees = seed % 3 == 0;
  options.planner.residency_restores = seed % 2 == 0 ? 0 : 4;
  if (seed % 4 == 0) {
    options.backing.bytes_per_second = 512 * kMiB;
    options.backing.burst_bytes = 64 * kMiB;
    options.backing.idle_for = std::chrono::milliseconds(50);
  }
  return options;
}

class Run {
 public:
  Run(uint64_t seed, absl::Span<const uint8_t> program, uint64_t restarts)
      : program_(program),
        world_(OptionsOf(seed), 1 + seed % 2, 64 * SimWorld::kGranule,
               (seed % 5 == 0 ? 40 : 160) * SimWorld::kGranule,
               /*others_bytes=*/0, device::DeviceKind::kVmm,
               /*max_ready_tails=*/seed % 3 == 0 ? 0 : 12,
               /*least_standing_bytes=*/seed % 3 == 2 ? SimWorld::kGranule : 0),
        fates_(seed) {
    if (restarts == 0) return;
    world_.SetFate([this, restarts] {
      return fates_() % restarts == 0
                 ? static_cast<SimWorld::Fate>(1 + fates_() % 3)
                 : SimWorld::Fate::kLives;
    });
  }

  MachineRun Go() {
    for (const char* tenant : kTenants) SetTenant(tenant);
    while (!program_.empty() && world_.problem().empty()) {
      ++run_.steps;
      Step();
    }
    if (world_.problem().empty()) End();
    run_.problem = world_.problem();
    run_.last_lines.assign(world_.last_lines().begin(),
                           world_.last_lines().end());
    run_.trace_sum = world_.trace_sum();
    run_.events_of_kind = world_.events_of_kind;
    run_.restarts = world_.restarts;
    run_.adopted = world_.adopted;
    return run_;
  }

 private:
  uint8_t Byte() {
    if (program_.empty()) return 0;
    const uint8_t byte = program_.front();
    program_.remove_prefix(1);
    return byte;
  }
  uint64_t Below(uint64_t bound) { return Byte() % bound; }
  template <typename Items>
  auto& Pick(Items& items) {
    auto it = items.begin();
    std::advance(it, Below(items.size()));
    return *it;
  }
  quota::PoolId SomePool() {
    const std::vector<quota::PoolId> pools = world_.pools();
    return pools[Below(pools.size())];
  }
  std::string UuidOf(quota::PoolId pool) {
    return world_.state().PoolAt(pool).uuid();
  }
  // Null: there is none.
  SimClient* SomeClient() {
    const std::vector<SimClient*> clients = world_.clients();
    return clients.empty() ? nullptr : clients[Below(clients.size())];
  }

  void Step() {
    BuryKilled();
    const uint64_t kind = Byte();
    if (kind < 84) return StepWorld(kind);
    if (kind < 232) {
      if (world_.clients().size() < kClients && Below(4) == 0) return Connect();
      SimClient* client = SomeClient();
      return client == nullptr ? Connect() : StepClient(client, kind - 84);
    }
    StepOperator(kind - 232);
  }

  void BuryKilled() {
    for (SimClient* client : world_.clients()) {
      if (!client->ended) continue;
      ++run_.killed;
      End(client, "killed");
    }
  }

  void End(SimClient* client, const std::string& why) {
    run_.granted += client->granted;
    run_.attached += client->attached;
    run_.evicted += client->evicted;
    run_.restored += client->restored;
    world_.Close(client, why);
  }

  void Connect() {
    // Most are one tenant's, so that they share.
    world_.Connect(Below(2) == 0 ? kTenants[0]
                                 : kTenants[Below(std::size(kTenants))]);
  }

  // --- Devices, copies, time.
  void StepWorld(uint64_t kind) {
    if (kind < 30) {
      world_.StepDevice(SomePool());
    } else if (kind < 56) {
      world_.StepCopy(kind % 2 == 0, Below(24) == 0);
    } else if (kind < 70) {
      world_.Advance(std::chrono::microseconds(Below(256) * 40));
    } else if (kind < 77) {
      world_.AdvanceToDue();
    } else if (kind < 79) {
      world_.Advance(std::chrono::milliseconds(Below(256) * 8));
    } else if (kind == 79) {
      world_.device(SomePool())
          .SetOutside(Below(3) == 0 ? Below(32) * SimWorld::kGranule : 0);
    } else if (kind == 80) {
      world_.device(SomePool()).SetOutside(0);
    } else if (kind == 81) {
      world_.device(SomePool()).FailNextCreate();
    } else if (kind == 82) {
      world_.SilenceKeeper(Below(3) == 0);
    } else {
      Connect();
    }
  }

  // --- Clients.
  void StepClient(SimClient* client, uint64_t kind) {
    if (kind < 36) return EnterOrLeave(client);
    if (kind < 76) return AnswerMove(client, Below(16) == 0);
    if (kind < 96) return Acquire(client);
    if (kind < 104) return Release(client);
    switch (kind) {
      case 104:
      case 105:
      case 106:
      case 107:
        return Attach(client);
      case 108:
      case 109:
      case 110:
        return Seal(client);
      case 111:
        return Drop(client);
      case 112:
      case 113:
        return Cancel(client);
      case 114:
        return SetGate(client, false);
      case 115:
      case 116:
      case 117:
      case 118:
      case 119:
      case 120:
        return SetGate(client, true);
      case 121:
      case 122:
        return SetTrimmable(client);
      case 123:
      case 124:
      case 125:
        return Trimmed(client);
      case 126:
      case 127:
        return End(client, "gone");
      case 128:
        return Restore(client);
      case 129:
        return Lie(client);
      case 130:
        return world_.Do("stream", [&](Turn& turn) {
          world_.machine().sessions().OnStream(client->session, turn);
        });
      case 131:
        if (Below(8) != 0) return;
        client->breaks_rules = true;
        client->cells->word.store(Byte() * uint64_t{Byte()});
        return;
      case 132:
        return GetQuota(client);
      default:
        return EnterOrLeave(client);
    }
  }

  uint64_t Send(SimClient* client, v1::ClientMessage message) {
    const uint64_t id = ++client->last_request;
    message.set_request_id(id);
    world_.Send(client, std::move(message));
    return id;
  }
  static void SetWait(uint64_t ms, google::protobuf::Duration* wait) {
    wait->set_seconds(static_cast<int64_t>(ms / 1000));
    wait->set_nanos(static_cast<int32_t>(ms % 1000 * 1'000'000));
  }

  void Acquire(SimClient* client) {
    v1::ClientMessage message;
    v1::Acquire& acquire = *message.mutable_acquire();
    acquire.set_bytes((1 + Below(Below(4) == 0 ? 60 : 16)) *
                      SimWorld::kGranule);
    acquire.set_device(UuidOf(SomePool()));
    const uint64_t contents = Below(8);
    acquire.set_contents(contents < 6    ? v1::PRESERVE
                         : contents == 6 ? v1::DISCARD
                                         : v1::RESIDENT);
    SetWait(Below(3) == 0 ? 0 : Below(256) * 16, acquire.mutable_wait());
    if (Below(3) == 0) {
      acquire.set_share_as(kNames[Below(2)]);
      acquire.set_keep(Below(3) == 0);
    }
    Send(client, message);
  }
  void Release(SimClient* client) {
    if (client->leases.empty()) return;
    const auto lease = Pick(client->leases);
    // A process lets its mapping go first, or lies.
    if (lease.second.mapped && Below(12) != 0)
      world_.HoldSlabs(lease.second, false);
    client->leases.erase(lease.first);
    // Nor are its moves answered any more: it may be attached to anew.
    std::erase_if(client->moves, [&](const v1::BrokerMessage& move) {
      return (move.has_evict() ? move.evict().lease_id()
                               : move.map().lease_id()) == lease.first;
    });
    v1::ClientMessage message;
    message.mutable_release()->set_lease_id(lease.first);
    Send(client, message);
  }
  void Attach(SimClient* client) {
    v1::ClientMessage message;
    message.mutable_attach()->set_name(kNames[Below(2)]);
    SetWait(Below(256) * 8, message.mutable_attach()->mutable_wait());
    Send(client, message);
  }
  void Seal(SimClient* client) {
    if (client->leases.empty()) return;
    auto* chosen = &Pick(client->leases);
    for (auto& candidate : client->leases) {
      const SimLease& it = candidate.second;
      if (!it.reader && !it.sealed && !it.name.empty() && !it.tags.empty())
        chosen = &candidate;
    }
    auto& [id, lease] = *chosen;
    if (lease.reader || lease.tags.empty()) return;
    lease.sealed = true;
    if (!lease.name.empty() && !lease.tags.empty())
      shared_tags_[id] = lease.tags;
    v1::ClientMessage message;
    message.mutable_seal()->set_lease_id(id);
    Send(client, message);
  }
  void Drop(SimClient* client) {
    v1::ClientMessage message;
    message.mutable_drop()->set_name(kNames[Below(2)]);
    Send(client, message);
  }
  void Cancel(SimClient* client) {
    if (client->last_request == 0) return;
    v1::ClientMessage message;
    message.mutable_cancel()->set_acquire_request_id(
        client->last_request - Below(client->last_request));
    Send(client, message);
  }
  void SetGate(SimClient* client, bool on) {
    if (on && client->cells->word.load() == ipc::kGateOff.bits()) {
      client->cells->word.store(
          ipc::GateWord(ipc::GateState::kParked, 0, 1).bits());
    }
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(on);
    if (Below(4) == 0) message.mutable_set_gate()->set_group("g");
    Send(client, message);
  }
  void SetTrimmable(SimClient* client) {
    v1::ClientMessage message;
    auto* on = message.mutable_set_trimmable()->add_devices();
    on->set_device(UuidOf(SomePool()));
    on->set_bytes(Below(16) * SimWorld::kGranule);
    Send(client, message);
  }
  void Trimmed(SimClient* client) {
    if (client->trim == 0) return;
    if (Below(3) == 0) Release(client);
    v1::ClientMessage message;
    message.mutable_trimmed()->set_trim(client->trim);
    client->trim = 0;
    Send(client, message);
  }
  void Restore(SimClient* client) {
    v1::ClientMessage message;
    SetWait(Below(256) * 16, message.mutable_restore()->mutable_wait());
    Send(client, message);
  }
  void GetQuota(SimClient* client) {
    v1::ClientMessage message;
    message.mutable_get_quota();
    Send(client, message);
  }
  // An answer to nothing, or an old request again.
  void Lie(SimClient* client) {
    v1::ClientMessage message;
    if (Below(2) == 0) {
      message.mutable_mapped()->set_lease_id(1 + Below(64));
      message.mutable_mapped()->set_move(Below(32));
    } else {
      message.mutable_unmapped()->set_lease_id(1 + Below(64));
      message.mutable_unmapped()->set_move(Below(32));
    }
    message.set_request_id(Below(client->last_request + 1));
    // It may hit the true number: then the client has said so itself.
    const bool true_one = std::any_of(
        client->moves.begin(), client->moves.end(), [&](const auto& move) {
          const uint64_t number =
              move.has_evict() ? move.evict().move() : move.map().move();
          return number == message.mapped().move() ||
                 number == message.unmapped().move();
        });
    if (!true_one) world_.Send(client, message);
  }

  void AnswerMove(SimClient* client, bool refuses) {
    if (client->moves.empty()) return;
    const v1::BrokerMessage move = client->moves.front();
    client->moves.pop_front();
    const bool out = move.has_evict();
    const uint64_t id = out ? move.evict().lease_id() : move.map().lease_id();
    const uint64_t number = out ? move.evict().move() : move.map().move();
    const auto known = client->leases.find(id);
    if (known == client->leases.end()) return;  // released meanwhile
    SimLease& lease = known->second;
    // It has followed the same order of a broker that has died.
    if (out && !lease.mapped) refuses = false;
    v1::ClientMessage message;
    v1::Error error;
    error.set_code(13);
    error.set_message("it will not");
    if (out) {
      message.mutable_unmapped()->set_lease_id(id);
      message.mutable_unmapped()->set_move(number);
      if (refuses) *message.mutable_unmapped()->mutable_error() = error;
      if (!refuses && lease.mapped) {
        world_.HoldSlabs(lease, false);
        lease.mapped = false;
        ++client->evicted;
      }
    } else {
      message.mutable_mapped()->set_lease_id(id);
      message.mutable_mapped()->set_move(number);
      if (refuses) *message.mutable_mapped()->mutable_error() = error;
      if (lease.mapped) world_.HoldSlabs(lease, false);
      lease.mapped = false;
      if (!refuses) {
        lease.slabs = client->packets[{0, number}];
        lease.mapped = true;
        world_.HoldSlabs(lease, true);
      }
      client->packets.erase({0, number});
    }
    world_.Send(client, message);
  }

  void EnterOrLeave(SimClient* client) {
    auto& word = client->cells->word;
    uint64_t seen = word.load();
    if (client->in_scope) {
      const auto out = ipc::AfterLeave(ipc::GateWord(seen));
      client->in_scope = false;
      if (!out.has_value()) return;  // it has written over its own word
      word.store(
          ipc::GateWord(ipc::GateState::kParked, 0, out->epoch(), out->paused())
              .bits());
      client->cells->left_at_ns.store(static_cast<uint64_t>(world_.now().ns));
      return;
    }
    const Session* session = world_.state().sessions->Find(client->session);
    if (session != nullptr && !session->gate->on()) return Use(client);
    const auto next = ipc::AfterEnter(ipc::GateWord(seen));
    if (!next.has_value()) {
      const auto& asked = client->asked;
      if (std::none_of(asked.begin(), asked.end(), [](const auto& request) {
            return request.second.has_restore();
          })) {
        Restore(client);
      }
      return;
    }
    word.store(next->bits());
    client->in_scope = true;
    Use(client);
  }

  // A scope: everything is mapped and is as it was left; then it is written.
  void Use(SimClient* client) {
    const Session* session = world_.state().sessions->Find(client->session);
    if (session == nullptr || client->breaks_rules) return;
    for (auto& [id, lease] : client->leases) {
      world_.Expect(lease.mapped,
                    absl::StrCat("session ", client->session,
                                 " is in a scope without lease ", id));
      for (const SimSlab& slab : lease.slabs) {
        world_.Expect(world_.IsAlive(lease.pool, slab.id),
                      absl::StrCat("lease ", id,
                                   " is mapped to a slab that "
                                   "is gone: ",
                                   slab.id));
      }
      if (!world_.problem().empty()) return;
      if (lease.reader && shared_tags_.contains(id))
        lease.tags = shared_tags_[id];
      CheckTags(*client, id, lease);
      if (!lease.reader && !lease.sealed) WriteTags(*client, &lease);
    }
  }
  void CheckTags(const SimClient& client, uint64_t id, const SimLease& lease) {
    std::vector<uint64_t> tags;
    for (const SimSlab& slab : lease.slabs) {
      const std::vector<uint64_t>& bytes = world_.Bytes(slab);
      tags.insert(tags.end(), bytes.begin(), bytes.end());
    }
    for (const uint64_t tag : tags) {
      const auto owner = tag_tenants_.find(tag);
      if (owner == tag_tenants_.end()) continue;
      world_.Expect(
          owner->second == client.tenant,
          absl::StrCat("session ", client.session, " of ", client.tenant,
                       " sees bytes of ", owner->second));
    }
    if (lease.contents != v1::PRESERVE || lease.tags.empty()) return;
    world_.Expect(tags == lease.tags,
                  absl::StrCat("session ", client.session, " lease ", id,
                               ": its contents are not what was written"));
    run_.read += tags.size();
  }
  void WriteTags(const SimClient& client, SimLease* lease) {
    lease->tags.clear();
    for (const SimSlab& slab : lease->slabs) {
      for (uint64_t& granule : world_.Bytes(slab)) {
        granule = ++world_.last_tag;
        tag_tenants_[granule] = client.tenant;
        lease->tags.push_back(granule);
      }
    }
  }

  // --- Operators.
  void SetTenant(const std::string& name) {
    TenantPolicy policy;
    policy.name = name;
    const uint64_t limit = 30 + Below(71);
    policy.quota = {
        quota::Amount::Fraction(static_cast<double>(Below(34)) / 100),
        quota::Amount::Fraction(static_cast<double>(limit) / 100),
        1.0 + static_cast<double>(Below(3))};
    policy.max_handles = 64 + static_cast<uint32_t>(Below(64));
    policy.max_sessions = 5;
    policy.reclaim.may_terminate = Below(3) == 0;
    policy.reclaim.pause_grace = std::chrono::milliseconds(Below(256) * 4);
    policy.reclaim.min_residency = std::chrono::milliseconds(Below(8) * 10);
    if (Below(6) == 0) policy.reclaim.host_limit = quota::Amount::Fraction(0.2);
    world_.Do("set tenant", name, [&](Turn& turn) {
      (void)world_.machine().operators().SetTenant(policy, turn).ok();
    });
  }

  void StepOperator(uint64_t kind) {
    const std::string tenant = kTenants[Below(std::size(kTenants))];
    Machine& machine = world_.machine();
    switch (kind) {
      case 0:
      case 1:
      case 2:
      case 3:
        return SetTenant(tenant);
      case 4:
      case 5: {
        const auto size =
            quota::Amount::Bytes((20 + Below(45)) * SimWorld::kGranule);
        const std::string device = UuidOf(SomePool());
        return world_.Do("resize", [&](Turn& turn) {
          (void)machine.operators().ResizePool(device, size, turn).ok();
        });
      }
      case 6: {
        const std::string device = UuidOf(SomePool());
        const bool draining = Below(16) == 0;
        return world_.Do("drain", [&](Turn& turn) {
          (void)machine.operators().DrainPool(device, draining, turn).ok();
        });
      }
      case 7: {
        const std::string device = UuidOf(SomePool());
        return world_.Do("drain no more", [&](Turn& turn) {
          (void)machine.operators().DrainPool(device, false, turn).ok();
        });
      }
      case 8:
      case 9:
      case 10:
        return Reclaim(tenant);
      case 11:
        if (Below(2) == 0) return;
        return world_.Do("see off", tenant, [&](Turn& turn) {
          ++asked_;
          if (!machine.operators()
                   .StartDeparture(
                       tenant, std::chrono::milliseconds(Below(256) * 16),
                       [this, tenant](const absl::Status& done) {
                         if (done.ok()) seen_off_.insert(tenant);
                       },
                       turn)
                   .ok()) {
            --asked_;
          }
        });
      case 12:
        return world_.Do("delete tenant", tenant, [&](Turn& turn) {
          if (machine.operators().DeleteTenant(tenant, turn).ok())
            seen_off_.erase(tenant);
        });
      case 13:
        return world_.Do("stay", tenant, [&](Turn& turn) {
          // The operator who saw it off has been answered, and lets it stay.
          if (seen_off_.erase(tenant) > 0)
            machine.operators().EndDeparture(tenant, turn);
          machine.operators().EndKept(tenant, turn);
        });
      case 14:
        return world_.Do("drop lease", [&](Turn& turn) {
          (void)machine.operators()
              .DropLease(tenant, kNames[Below(2)], turn)
              .ok();
        });
      default:
        return SetTenant(tenant);
    }
  }
  void Reclaim(const std::string& tenant) {
    v1::ReclaimRequest request;
    request.set_tenant(tenant);
    request.set_device(UuidOf(SomePool()));
    request.set_bytes(Below(3) * 8 * SimWorld::kGranule);
    request.set_to(Below(4) == 0 ? v1::ReclaimRequest::TRIM
                                 : v1::ReclaimRequest::EVICT);
    SetWait(Below(256) * 8, request.mutable_wait());
    world_.Do("reclaim", [&](Turn& turn) {
      ++asked_;
      if (!world_.machine()
               .operators()
               .StartReclaim(
                   request, [](const absl::StatusOr<v1::ReclaimResponse>&) {},
                   turn)
               .ok()) {
        --asked_;
      }
    });
  }

  // Everybody goes; nothing may be left.
  void End() {
    world_.SetFate(nullptr);
    for (const quota::PoolId pool : world_.pools())
      world_.device(pool).SetOutside(0);
    while (!world_.clients().empty()) End(world_.clients().front(), "end");
    // A tenant whose sessions are not quite gone keeps what it shares.
    while (!world_.state().ended_sessions->empty() && world_.problem().empty())
      world_.AdvanceToDue();
    for (const char* tenant : kTenants) {
      world_.Do("end kept", [&](Turn& turn) {
        world_.machine().operators().EndKept(tenant, turn);
      });
    }
    world_.SilenceKeeper(false);
    world_.RunOut();
    world_.Do("refuse waiting", [&](Turn& turn) {
      world_.machine().operators().RefuseWaiting(turn);
    });
    world_.Expect(world_.replies == asked_,
                  absl::StrCat("operators asked ", asked_,
                               " times and were "
                               "answered ",
                               world_.replies, " times"));
    if (world_.problem().empty())
      world_.Expect(WhatIsLeft(world_.state()).empty(),
                    WhatIsLeft(world_.state()));
  }

  absl::Span<const uint8_t> program_;
  SimWorld world_;
  MachineRun run_;
  std::mt19937_64 fates_;
  uint64_t asked_ = 0;  // of operators, that are to be answered
  std::set<std::string> seen_off_;
  std::map<uint64_t, std::vector<uint64_t>> shared_tags_;  // of sealed leases
  std::map<uint64_t, std::string> tag_tenants_;
};

}  // namespace

MachineRun InterpretMachine(uint64_t seed, absl::Span<const uint8_t> program,
                            uint64_t restarts) {
  return Run(seed, program, restarts).Go();
}

std::vector<uint8_t> ProgramOf(uint64_t seed, size_t bytes) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> program(bytes);
  for (uint8_t& byte : program) byte = static_cast<uint8_t>(random());
  return program;
}

}  // namespace gmb::broker
