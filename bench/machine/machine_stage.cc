#include "bench/machine/machine_stage.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/machine/turn.h"

namespace gmb::bench {
namespace {

double ThreadMicros() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e6 +
         static_cast<double>(at.tv_nsec) * 1e-3;
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::exit(1);
}

}  // namespace

MachineStage::MachineStage(const broker::MachineOptions& options,
                           uint64_t host_pool_bytes)
    : machine_(options, host_pool_bytes) {}

quota::Instant MachineStage::now() const {
  const auto real = std::chrono::steady_clock::now().time_since_epoch();
  return quota::Instant{
      std::chrono::duration_cast<std::chrono::nanoseconds>(real).count() +
      skipped_.count()};
}

// One turn as the core makes it, and then what its effects lead to.
template <typename Work>
void MachineStage::Event(const char* what, const Work& work) {
  const quota::Instant at = now();
  broker::Turn turn(at, absl::FromUnixNanos(at.ns));
  const double begin = ThreadMicros();
  work(turn);
  machine_.Settle(turn);
  std::vector<broker::Effect> effects = turn.TakeEffects();
  due_ = machine_.NextDue(at);
  const double took = ThreadMicros() - begin;
  spent_us_ += took;
  if (took > longest_.us) longest_ = {took, what};
  (void)turn.TakeBuried();
  Deliver(std::move(effects));
  if (following_) return;
  following_ = true;
  while (!follow_.empty()) {
    const std::function<void()> next = std::move(follow_.front());
    follow_.pop_front();
    next();
  }
  following_ = false;
}

void MachineStage::Deliver(std::vector<broker::Effect> effects) {
  for (const broker::Effect& effect : effects)
    std::visit([this](const auto& one) { Put(one); }, effect);
}

void MachineStage::Put(const broker::Say& say) {
  const auto client = clients_.find(say.session);
  if (client == clients_.end()) return;
  if (say.message.has_grant())
    client->second.last_lease = say.message.grant().lease_id();
  if (!say.message.has_evict()) return;
  evicted_.insert(say.session);
  v1::ClientMessage answer;
  answer.mutable_unmapped()->set_lease_id(say.message.evict().lease_id());
  answer.mutable_unmapped()->set_move(say.message.evict().move());
  follow_.push_back([this, session = say.session, answer] {
    Send(session, "unmapped", answer);
  });
}

void MachineStage::Put(const broker::Give& give) {
  follow_.push_back([this, give] {
    broker::DeviceResult result;
    result.job = give.job;
    const auto do_hand_over = [&](const broker::HandOver& slabs) {
      for (const broker::Condemned& old : slabs.destroy)
        result.destroyed_bytes += old.slab.bytes;
      for (const uint64_t bytes : slabs.create_bytes)
        result.created.push_back({.id = ++last_slab_, .bytes = bytes});
    };
    if (const auto* prepare = std::get_if<broker::PrepareJob>(&give.job))
      do_hand_over(prepare->slabs);
    if (const auto* refill = std::get_if<broker::RefillJob>(&give.job))
      do_hand_over(refill->slabs);
    if (const auto* destroy = std::get_if<broker::DestroyJob>(&give.job)) {
      for (const broker::Condemned& old : destroy->slabs)
        result.destroyed_bytes += old.slab.bytes;
    }
    result.reading.baseline_bytes = baselines_[give.pool];
    Event("device", [&](broker::Turn& turn) {
      machine_.OnDeviceResult(give.pool, result, turn);
    });
  });
}

void MachineStage::Put(const broker::CopySlab& copy) {
  follow_.push_back([this, lease = copy.lease] {
    Event("copied", [&](broker::Turn& turn) {
      machine_.OnCopied(lease, absl::OkStatus(), turn);
    });
  });
}

void MachineStage::AddPool(const std::string& uuid, uint64_t bytes) {
  broker::NewPool pool;
  pool.info.kind = device::DeviceKind::kHost;
  pool.info.uuid = uuid;
  pool.info.name = uuid;
  pool.info.granularity_bytes = kGranule;
  pool.info.total_bytes = 2 * bytes;
  pool.baseline_bytes = bytes + bytes / 8;
  pool.has_copier = true;
  pool.target_bytes = bytes;
  pool.share_of_bytes = bytes;
  pool.slabs = {.ready_slab_bytes = kGranule, .float_target_bytes = kGranule};
  pool.slabs.max_ready_slabs = 0;
  baselines_[quota::PoolId{baselines_.size() + 1}] = pool.baseline_bytes;
  Event("add pool", [&](broker::Turn& turn) {
    Require(machine_.operators().AddPool(pool, turn).status());
  });
}

void MachineStage::SetTenant(const std::string& name, uint64_t guarantee,
                             uint64_t limit) {
  broker::TenantPolicy policy;
  policy.name = name;
  policy.quota = {quota::Amount::Bytes(0), quota::Amount::Bytes(limit), 1};
  policy.device_quotas["gpu-1"] = {quota::Amount::Bytes(guarantee),
                                   quota::Amount::Bytes(limit), 1};
  policy.max_handles = 1'000'000;
  policy.max_sessions = 100'000;
  Event("set tenant", [&](broker::Turn& turn) {
    Require(machine_.operators().SetTenant(policy, turn).status());
  });
}

uint64_t MachineStage::Connect(const std::string& tenant, Gate gate) {
  Client client;
  client.cells = std::make_shared<ipc::GateCells>();
  client.cells->word.store(ipc::kGateOff.bits());
  client.cells->left_at_ns.store(0);
  broker::PeerIdentity peer;
  peer.origin = broker::Origin::kTenantDirectory;
  peer.tenant_directory = tenant;
  peer.pid = ++last_pid_;
  peer.program = "bench";
  uint64_t session = 0;
  Event("connect", [&](broker::Turn& turn) {
    const auto welcome = machine_.OpenSession(
        peer, absl::StrCat("token-", peer.pid),
        std::make_unique<broker::SessionGate>(client.cells, now()), turn);
    Require(welcome.status());
    session = welcome->session;
    machine_.sessions().OnStream(session, turn);
  });
  clients_[session] = client;
  if (gate == Gate::kOff) return session;
  const bool parked = gate == Gate::kParked;
  client.cells->word.store(
      ipc::GateWord(parked ? ipc::GateState::kParked : ipc::GateState::kOpen,
                    parked ? 0 : 1, 1)
          .bits());
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(true);
  Send(session, "set gate", message);
  return session;
}

uint64_t MachineStage::Send(uint64_t session, const char* what,
                            v1::ClientMessage message) {
  Client& client = clients_.at(session);
  message.set_request_id(++client.last_request);
  Event(what, [&](broker::Turn& turn) {
    machine_.HandleMessage(session, message, turn);
  });
  return client.last_request;
}

uint64_t MachineStage::Acquire(uint64_t session, const std::string& uuid,
                               uint64_t bytes, int64_t wait_seconds) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(bytes);
  message.mutable_acquire()->set_device(uuid);
  message.mutable_acquire()->set_contents(v1::PRESERVE);
  message.mutable_acquire()->mutable_wait()->set_seconds(wait_seconds);
  clients_.at(session).last_lease = 0;
  Send(session, "acquire", message);
  return clients_.at(session).last_lease;
}

void MachineStage::Release(uint64_t session, uint64_t lease) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease);
  Send(session, "release", message);
}

void MachineStage::Close(uint64_t session) {
  clients_.erase(session);
  Event("close", [&](broker::Turn& turn) {
    machine_.CloseSession(session, "the process has ended", turn);
  });
}

void MachineStage::Resize(const std::string& uuid, uint64_t bytes) {
  Event("resize", [&](broker::Turn& turn) {
    Require(machine_.operators()
                .ResizePool(uuid, quota::Amount::Bytes(bytes), turn)
                .status());
  });
}

void MachineStage::Drain(const std::string& uuid) {
  Event("drain", [&](broker::Turn& turn) {
    Require(machine_.operators().DrainPool(uuid, true, turn).status());
  });
}

void MachineStage::Park(uint64_t session) {
  Client& client = clients_.at(session);
  client.cells->left_at_ns.store(static_cast<uint64_t>(now().ns));
  client.cells->word.store(ipc::GateWord(ipc::GateState::kParked, 0, 2).bits());
}

void MachineStage::Tick() {
  ++ticks_;
  Event("tick", [&](broker::Turn& turn) { machine_.Tick(turn); });
}

void MachineStage::TickIfDue() {
  if (due_ <= now()) Tick();
}

}  // namespace gmb::bench
