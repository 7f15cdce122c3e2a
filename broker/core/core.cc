// The one lock of the broker: each call is one turn of the machine, whose
// effects are queued under the lock and carried out after it.
#include "broker/core/core.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "ipc/gate_page.h"
#include "ipc/pidfd.h"
#include "ipc/random.h"

namespace gmb::broker {
namespace {

// By the clock of the stall watch, which no test sets; a day at most.
StallWatch::Time FromNow(quota::Nanoseconds wait) {
  return std::chrono::steady_clock::now() +
         std::min<quota::Nanoseconds>(wait, std::chrono::hours(24));
}

}  // namespace

// From its beginning to the end of the scope: the lock is held, and `turn()` is
// a turn of the machine. Then the turn is settled, its effects are queued, the
// lock is given up, and the queues are set going.
//
// Clang's analysis does not see through a destructor that works under the lock
// that it gives up.
class ABSL_SCOPED_LOCKABLE Core::Entered {
 public:
  // `spent`: what the turn has spent at its end; null: nobody wants to know.
  explicit Entered(Core* core, uint64_t* spent = nullptr)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(core->mu_)
      : core_(core), spent_(spent) {
    core_->mu_.Lock();
    turn_.emplace(core_->deps_.clock->Now(), core_->deps_.clock->WallTime(),
                  core_->stalls_.WasHeldUp(std::chrono::steady_clock::now()));
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  // An exception in there ends the broker: its books would be half written.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  ~Entered() ABSL_UNLOCK_FUNCTION() { Leave(); }

  Turn& turn() { return *turn_; }

 private:
  void Leave() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Core* const core = core_;
    core->machine_.Settle(*turn_);
    if (spent_ != nullptr) *spent_ = turn_->spent();
    // First: nothing else is begun before it.
    const RecordChanges records = turn_->TakeRecords();
    if (core->deps_.journal != nullptr && !records.empty())
      core->deps_.journal->Commit(records);
    Errands errands = core->couriers_.Deliver(turn_->TakeEffects());
    errands.buried = turn_->TakeBuried();
    const quota::Instant due = core->machine_.NextDue(turn_->now());
    const bool wake = due < core->ticker_due_;
    if (wake) core->stalls_.SetDueEarlier(FromNow(due - turn_->now()));
    core->mu_.Unlock();
    core->Run(std::move(errands), wake);
  }

  Core* const core_;
  uint64_t* const spent_;
  std::optional<Turn> turn_;
};

Core::Core(const MachineOptions& options, const Deps& deps)
    : deps_(deps),
      started_(deps.clock->WallTime()),
      machine_(options,
               deps.host_pool == nullptr ? 0 : deps.host_pool->size_bytes()),
      couriers_(deps.keeper, deps.events) {
  couriers_.SetCopied([this](quota::LeaseId lease, const absl::Status& status) {
    OnCopied(lease, status);
  });
}

// The devices' threads call back into the core: they are joined while all of
// it is still there, and outside the lock.
Core::~Core() {
  std::map<quota::PoolId, Couriers::Device> devices;
  {
    base::MutexLock lock(&mu_);
    stopped_ = true;
    devices = couriers_.TakeDevices();
  }
  // A worker of one pool may be pushing into another's, or into a copier.
  for (auto& [pool, device] : devices) {
    device.worker->Stop();
    if (device.copier != nullptr) device.copier->Stop();
  }
}

void Core::Run(Errands errands, bool wake_ticker) {
  errands.Run();
  for (const Kill& kill : errands.kill) {
    const absl::Status killed = ipc::Kill(*kill.process);
    Entered in(this);
    machine_.debts().OnKilled(kill, killed, in.turn());
  }
  if (wake_ticker && wake_ticker_) wake_ticker_();
  deps_.events->Wake();  // last: log and watchers can wait
  for (const uint64_t session : errands.overflowed)
    CloseSession(session, "does not read what it is sent");
}

absl::Status Core::AddPool(PoolOptions options) {
  DeviceWorker* const worker = options.worker.get();
  quota::PoolId pool;
  {
    Entered in(this);
    const absl::StatusOr<quota::PoolId> added = machine_.operators().AddPool(
        {.info = worker->info(),
         .baseline_bytes = worker->baseline_bytes(),
         .has_copier = options.copier != nullptr,
         .target_bytes = options.target_bytes,
         .wanted = options.wanted,
         .share_of_bytes = options.share_of_bytes,
         .slabs = options.slabs},
        in.turn());
    if (!added.ok()) return added.status();
    pool = *added;
    couriers_.AddDevice(pool,
                        {std::move(options.worker), std::move(options.copier)});
  }
  worker->Start([this, pool](const DeviceResult& result) {
    OnDeviceResult(pool, result);
  });
  return absl::OkStatus();
}

void Core::SetWakeTicker(std::function<void()> wake) {
  wake_ticker_ = std::move(wake);
}

absl::StatusOr<OpenedSession> Core::OpenSession(const PeerIdentity& peer) {
  absl::StatusOr<std::string> token = ipc::RandomToken(16);
  if (!token.ok()) return token.status();
  OpenedSession opened;
  std::unique_ptr<SessionGate> gate;
  if (peer.origin != Origin::kAdmin) {
    absl::StatusOr<base::UniqueFd> fd = ipc::CreateGatePage();
    if (!fd.ok()) return fd.status();
    absl::StatusOr<ipc::GatePage> page = ipc::GatePage::Map(fd->get());
    if (!page.ok()) return page.status();
    const auto mapped = std::make_shared<ipc::GatePage>(*std::move(page));
    gate = std::make_unique<SessionGate>(
        std::shared_ptr<ipc::GateCells>(mapped, &mapped->cells()),
        deps_.clock->Now());
    opened.gate_page = *std::move(fd);
  }
  opened.outbox = std::make_shared<Outbox>();
  Entered in(this);
  absl::StatusOr<Welcome> welcome =
      machine_.OpenSession(peer, *token, std::move(gate), in.turn());
  if (!welcome.ok()) return welcome.status();
  couriers_.AddOutbox(welcome->session, opened.outbox);
  opened.id = welcome->session;
  opened.token = *std::move(token);
  opened.tenant = std::move(welcome->tenant);
  opened.devices = std::move(welcome->devices);
  opened.warnings = std::move(welcome->warnings);
  opened.host_pool_bytes = welcome->host_pool_bytes;
  return opened;
}

std::vector<NotAdopted> Core::Adopt(const Adoption& adoption,
                                    std::vector<OpenedSession>* opened) {
  std::vector<std::shared_ptr<Outbox>> outboxes;
  const uint64_t first_frame = (adoption.head.generation + 1) << 32;
  for (size_t i = 0; i < adoption.sessions.size(); ++i) {
    outboxes.push_back(std::make_shared<Outbox>());
    outboxes.back()->IgnoreAcksBelow(first_frame);
  }
  Entered in(this);
  // Before the machine speaks to them.
  for (size_t i = 0; i < adoption.sessions.size(); ++i)
    couriers_.AddOutbox(adoption.sessions[i].record.id, outboxes[i]);
  std::vector<NotAdopted> not_adopted = machine_.Adopt(adoption, in.turn());
  for (size_t i = 0; i < adoption.sessions.size(); ++i) {
    const SessionRecord& record = adoption.sessions[i].record;
    const Session* session = machine_.state().sessions->Find(record.id);
    if (session == nullptr || session->talk->ended) continue;
    OpenedSession adopted;
    adopted.id = record.id;
    adopted.token = record.token;
    adopted.tenant = record.tenant;
    adopted.outbox = outboxes[i];
    opened->push_back(std::move(adopted));
  }
  return not_adopted;
}

void Core::OnWelcomed(uint64_t session) {
  Entered in(this);
  machine_.sessions().OnWelcomed(session);
}

void Core::CloseSession(uint64_t session, absl::string_view reason) {
  Entered in(this);
  machine_.CloseSession(session, reason, in.turn());
}

absl::StatusOr<Caller> Core::Authenticate(absl::string_view token,
                                          pid_t pid) const {
  base::MutexLock lock(&mu_);
  return machine_.sessions().Authenticate(token, pid);
}

// The stream first, so that what is said anew goes to it.
absl::StatusOr<std::shared_ptr<Outbox>> Core::AttachStream(
    uint64_t session, std::shared_ptr<StreamSink> sink) {
  std::shared_ptr<Outbox> outbox;
  {
    base::MutexLock lock(&mu_);
    if (absl::Status may = machine_.sessions().CheckStream(session); !may.ok())
      return may;
    outbox = couriers_.OutboxOf(session);
  }
  outbox->AttachStream(std::move(sink));
  Entered in(this);
  machine_.sessions().OnStream(session, in.turn());
  return outbox;
}

uint64_t Core::HandleMessage(uint64_t session,
                             const v1::ClientMessage& message) {
  uint64_t spent = 0;
  {
    Entered in(this, &spent);
    machine_.HandleMessage(session, message, in.turn());
  }
  return spent;
}

void Core::OnDeviceResult(quota::PoolId pool, const DeviceResult& result) {
  Entered in(this);
  if (!stopped_) machine_.OnDeviceResult(pool, result, in.turn());
}

void Core::OnCopied(quota::LeaseId lease, const absl::Status& status) {
  Entered in(this);
  if (!stopped_) machine_.OnCopied(lease, status, in.turn());
}

// It is the ticker that calls: nothing has to wake it.
quota::Instant Core::Tick() {
  quota::Instant now;
  {
    Entered in(this);
    now = in.turn().now();
    // Nobody has to wake it meanwhile.
    ticker_due_ = quota::Instant{std::numeric_limits<int64_t>::min()};
    machine_.Tick(in.turn());
  }
  base::MutexLock lock(&mu_);
  // As of that turn: what is due since then is due now.
  ticker_due_ = machine_.NextDue(now);
  stalls_.SetDue(FromNow(ticker_due_ - now));
  return ticker_due_;
}

void Core::BeginDrain(absl::Duration deadline) {
  Entered in(this);
  machine_.operators().BeginDrain(deadline, in.turn());
}

uint64_t Core::TenantSessions() const {
  base::MutexLock lock(&mu_);
  return machine_.state().sessions->clients();
}

absl::Status Core::CheckTenant(const TenantPolicy& policy) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().CheckTenant(policy);
}

std::vector<v1::Change> Core::Preview(const TenantPolicy& policy) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().Preview(policy);
}

absl::StatusOr<std::vector<v1::Change>> Core::SetTenant(
    const TenantPolicy& policy) {
  Entered in(this);
  return machine_.operators().SetTenant(policy, in.turn());
}

absl::StatusOr<std::vector<HeldBack>> Core::ApplyFile(
    const FileChange& change) {
  Entered in(this);
  return machine_.operators().ApplyFile(change, in.turn());
}

absl::Status Core::CheckFile(const FileChange& change) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().CheckFile(change);
}

absl::StatusOr<bool> Core::BeginDelete(absl::string_view name) {
  Entered in(this);
  return machine_.operators().BeginDelete(name);
}

absl::Status Core::DeleteTenant(absl::string_view name) {
  Entered in(this);
  return machine_.operators().DeleteTenant(name, in.turn());
}

absl::Status Core::StartDeparture(absl::string_view name,
                                  quota::Nanoseconds wait,
                                  Departure::Done done) {
  Entered in(this);
  return machine_.operators().StartDeparture(name, wait, std::move(done),
                                             in.turn());
}

void Core::EndDeparture(absl::string_view name) {
  Entered in(this);
  machine_.operators().EndDeparture(name, in.turn());
}

void Core::EndKept(absl::string_view tenant) {
  Entered in(this);
  machine_.operators().EndKept(tenant, in.turn());
}

absl::StatusOr<uint32_t> Core::DropLease(absl::string_view tenant,
                                         const std::string& name) {
  Entered in(this);
  return machine_.operators().DropLease(tenant, name, in.turn());
}

absl::StatusOr<TenantPolicy> Core::GetPolicy(absl::string_view name) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().GetPolicy(name);
}

absl::StatusOr<quota::TenantId> Core::IdOf(absl::string_view name) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().IdOf(name);
}

absl::StatusOr<std::string> Core::ResolveDevice(
    absl::string_view device) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().ResolveDevice(device);
}

absl::Status Core::CheckResize(const std::string& device,
                               const quota::Amount& size) const {
  base::MutexLock lock(&mu_);
  return machine_.operators().CheckResize(device, size);
}

absl::StatusOr<v1::Change> Core::ResizePool(const std::string& device,
                                            const quota::Amount& size) {
  Entered in(this);
  return machine_.operators().ResizePool(device, size, in.turn());
}

absl::StatusOr<uint64_t> Core::DrainPool(const std::string& device,
                                         bool draining) {
  Entered in(this);
  return machine_.operators().DrainPool(device, draining, in.turn());
}

absl::Status Core::StartReclaim(const v1::ReclaimRequest& request,
                                StandingDemand::Done done) {
  Entered in(this);
  return machine_.operators().StartReclaim(request, std::move(done), in.turn());
}

void Core::RefuseWaiting() {
  Entered in(this);
  machine_.operators().RefuseWaiting(in.turn());
}

}  // namespace gmb::broker
