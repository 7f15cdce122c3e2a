#include "tests/broker/report/large_machine.h"

#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ipc/gate_word.h"
#include "tests/broker/machine/sim_allocator.h"

namespace gmb::broker {
namespace {

MachineOptions Options() {
  MachineOptions options;
  options.max_handles = 1'000'000;
  options.max_sessions = 100'000;
  options.max_requests_per_session = 100'000;
  return options;
}

}  // namespace

LargeMachine::Device::Device(uint64_t bytes)
    : tasks(*DeviceTasks::Create(
          std::make_unique<SimAllocator>("sim-1", bytes, kGranule), &keeper,
          &slab_ids)) {}

LargeMachine::LargeMachine(uint64_t pool_bytes)
    : machine_(Options(), 0),
      device_(std::make_shared<Device>(pool_bytes + pool_bytes / 8)) {
  SlabPool::Options slabs = SlabPool::DefaultOptions(pool_bytes, kGranule);
  slabs.max_returned_slabs = 0;
  Do([&](Turn& turn) {
    pool_ = *machine_.operators().AddPool(
        {.info = device_->tasks->info(),
         .baseline_bytes = device_->tasks->baseline_bytes(),
         .has_copier = false,
         .target_bytes = pool_bytes,
         .share_of_bytes = pool_bytes,
         .slabs = slabs},
        turn);
  });
}

template <typename Work>
void LargeMachine::Do(const Work& work) {
  now_ = now_ + std::chrono::microseconds(1);
  std::vector<DeviceJob> jobs;
  const auto settle = [&](Turn* turn) {
    machine_.Settle(*turn);
    for (Effect& effect : turn->TakeEffects()) {
      if (Give* const give = std::get_if<Give>(&effect))
        jobs.push_back(std::move(give->job));
    }
  };
  Turn turn(now_, absl::FromUnixNanos(now_.ns));
  on_turn(true);
  work(turn);
  settle(&turn);
  on_turn(false);
  while (!jobs.empty()) {
    for (DeviceJob& job : std::exchange(jobs, {})) {
      const DeviceResult result = device_->tasks->Do(std::move(job));
      Turn next(now_, absl::FromUnixNanos(now_.ns));
      on_turn(true);
      machine_.OnDeviceResult(pool_, result, next);
      settle(&next);
      on_turn(false);
    }
  }
}

void LargeMachine::SetTenant(const std::string& name, bool may_terminate) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota = {quota::Amount::Bytes(0), quota::Amount::Fraction(1), 1};
  policy.max_handles = 1'000'000;
  policy.max_sessions = 100'000;
  policy.reclaim.may_terminate = may_terminate;
  Do([&](Turn& turn) {
    ASSERT_TRUE(machine_.operators().SetTenant(policy, turn).ok());
  });
}

uint64_t LargeMachine::Connect(const std::string& tenant) {
  auto cells = std::make_shared<ipc::GateCells>();
  cells->word.store(ipc::kGateOff.bits());
  cells->left_at_ns.store(0);
  PeerIdentity peer;
  peer.origin = Origin::kTenantDirectory;
  peer.tenant_directory = tenant;
  peer.pid = ++last_pid_;
  peer.program = "large";
  uint64_t session = 0;
  Do([&](Turn& turn) {
    const absl::StatusOr<Welcome> welcome =
        machine_.OpenSession(peer, absl::StrCat("token-", last_pid_),
                             std::make_unique<SessionGate>(cells, now_), turn);
    ASSERT_TRUE(welcome.ok()) << welcome.status();
    session = welcome->session;
  });
  gates_.emplace(session, std::move(cells));
  return session;
}

void LargeMachine::Close(uint64_t session) {
  Do([&](Turn& turn) { machine_.CloseSession(session, "end", turn); });
  gates_.erase(session);
}

uint64_t LargeMachine::Acquire(uint64_t session, uint64_t granules) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(granules * kGranule);
  message.mutable_acquire()->mutable_wait()->set_seconds(3600);
  Send(session, message);
  return last_request_;
}

void LargeMachine::Release(uint64_t session, uint64_t lease) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease);
  Send(session, message);
}

void LargeMachine::Cancel(uint64_t session, uint64_t request) {
  v1::ClientMessage message;
  message.mutable_cancel()->set_acquire_request_id(request);
  Send(session, message);
}

void LargeMachine::Send(uint64_t session, v1::ClientMessage message) {
  message.set_request_id(++last_request_);
  Do([&](Turn& turn) { machine_.HandleMessage(session, message, turn); });
}

}  // namespace gmb::broker
