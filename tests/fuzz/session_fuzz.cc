// A client's messages as they arrive on its stream, with anything in their
// fields and said any number of times: after each the machine's books add up,
// and once all have gone nothing is left.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "broker/machine/machine.h"
#include "gmb/v1/session.pb.h"
#include "tests/broker/machine/machine_invariants.h"
#include "tests/broker/machine/sim_world.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using broker::SimClient;
using broker::SimLease;
using broker::SimWorld;

constexpr uint64_t kPoolBytes = 32 * SimWorld::kGranule;
const char* const kSomeTenants[] = {"a", "b"};

broker::MachineOptions SmallMachine() {
  broker::MachineOptions options;
  options.recorded = true;
  options.max_handles = 128;
  options.max_sessions = 8;
  options.max_requests_per_session = 4;
  options.planner.unmap_grace = std::chrono::milliseconds(200);
  options.planner.kill_grace = std::chrono::milliseconds(300);
  return options;
}

class SessionRun {
 public:
  explicit SessionRun(Bytes bytes)
      : input_(bytes),
        world_(SmallMachine(), 1 + input_.Below(2), kPoolBytes,
               (input_.Flag() ? 64 : 8) * SimWorld::kGranule) {
    for (const char* name : kSomeTenants) {
      broker::TenantPolicy policy;
      policy.name = name;
      policy.quota.guarantee =
          ::gmb::quota::Amount::Bytes(input_.Below(16) * SimWorld::kGranule);
      policy.quota.limit = ::gmb::quota::Amount::Fraction(1);
      policy.max_sessions = 3;
      policy.reclaim.may_terminate = input_.Flag();
      world_.Do("set tenant", [&](broker::Turn& turn) {
        (void)world_.machine().operators().SetTenant(policy, turn).ok();
      });
    }
  }

  std::string Go() {
    while (!input_.empty() && world_.problem().empty()) Step();
    End();
    if (!world_.problem().empty()) {
      for (const std::string& line : world_.last_lines())
        std::fprintf(stderr, "%s\n", line.c_str());
    }
    return world_.problem();
  }

 private:
  SimClient* SomeClient() {
    const auto clients = world_.clients();
    const size_t which = input_.Below(4);
    if (which < clients.size()) return clients[which];
    return world_.Connect(kSomeTenants[which & 1]);
  }
  ::gmb::quota::PoolId SomePool() {
    const auto pools = world_.pools();
    return pools[input_.Below(pools.size())];
  }

  void Step() {
    for (SimClient* client : world_.clients())
      if (client->ended) world_.Close(client, "killed");
    switch (input_.Below(12)) {
      case 0:
        return (void)world_.StepDevice(SomePool());
      case 1:
        return (void)world_.StepCopy(input_.Flag(), input_.Below(8) == 0);
      case 2:
        return world_.Advance(std::chrono::milliseconds(input_.Byte()));
      case 3:
        if (SimClient* client = SomeClient()) FollowMove(client);
        return;
      case 4:
        if (SimClient* client = SomeClient())
          client->cells->word.store(SomeWord().bits());
        return;
      case 5:
        if (SimClient* client = SomeClient()) world_.Close(client, "gone");
        return;
      default:
        if (SimClient* client = SomeClient()) Say(client);
    }
  }
  ipc::GateWord SomeWord() {
    if (input_.Flag()) return ipc::GateWord(input_.Number<uint64_t>());
    return ipc::GateWord(ipc::GateState::kParked, 0, input_.Byte());
  }

  // As the message comes from gRPC: what is no message never reaches the core.
  void Say(SimClient* client) {
    v1::ClientMessage message;
    if (!message.ParseFromString(input_.ShortText())) return;
    const uint64_t session = client->session;
    // Of a request that waits, the world remembers what was asked first.
    if (client->asked.contains(message.request_id())) {
      world_.Do("said again", [&](broker::Turn& turn) {
        world_.machine().HandleMessage(session, message, turn);
      });
    } else {
      world_.Send(client, message);
    }
  }

  // As a client does that means well.
  void FollowMove(SimClient* client) {
    if (client->moves.empty()) return;
    const v1::BrokerMessage move = client->moves.front();
    client->moves.pop_front();
    const bool out = move.has_evict();
    const uint64_t id = out ? move.evict().lease_id() : move.map().lease_id();
    const uint64_t number = out ? move.evict().move() : move.map().move();
    const auto known = client->leases.find(id);
    if (known == client->leases.end()) return;
    SimLease& lease = known->second;
    if (std::exchange(lease.mapped, !out)) world_.HoldSlabs(lease, false);
    v1::ClientMessage message;
    if (out) {
      message.mutable_unmapped()->set_lease_id(id);
      message.mutable_unmapped()->set_move(number);
    } else {
      lease.slabs = client->packets[{0, number}];
      world_.HoldSlabs(lease, true);
      message.mutable_mapped()->set_lease_id(id);
      message.mutable_mapped()->set_move(number);
    }
    world_.Send(client, message);
  }

  void End() {
    while (!world_.clients().empty())
      world_.Close(world_.clients().front(), "end");
    while (!world_.state().ended_sessions->empty() && world_.problem().empty())
      world_.AdvanceToDue();
    for (const char* tenant : kSomeTenants) {
      world_.Do("end kept", [&](broker::Turn& turn) {
        world_.machine().operators().EndKept(tenant, turn);
      });
    }
    world_.RunOut();
    const std::string left = WhatIsLeft(world_.state());
    if (world_.problem().empty()) world_.Expect(left.empty(), left);
  }

  Input input_;
  SimWorld world_;
};

}  // namespace

void FuzzSession(Bytes bytes) {
  const std::string problem = SessionRun(bytes).Go();
  Require(problem.empty(), problem.c_str());
}

}  // namespace gmb::fuzz
