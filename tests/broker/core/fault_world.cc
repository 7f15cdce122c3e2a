#include "tests/broker/core/fault_world.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kPattern = 0x600D;

MachineOptions Options() {
  MachineOptions options;
  options.planner.unmap_grace = std::chrono::seconds(kPatience);
  return options;
}

// Taken as it is needed, so that the machine may have none to spare.
std::unique_ptr<device::HostPool> PoolOnDemand(SpareMemory* spare) {
  const auto available = [spare]() -> absl::StatusOr<device::AvailableMemory> {
    const uint64_t call = ++spare->calls;
    const bool none = spare->first <= call && call <= spare->last;
    return device::AvailableMemory{none ? 0 : uint64_t{1} << 40, "a test"};
  };
  return *device::HostPool::Create({.bytes = FaultWorld::kPool,
                                    .chunk_bytes = FaultWorld::kSlab,
                                    .threads = 1,
                                    .on_demand = true,
                                    .ahead_bytes = 0,
                                    .available = available},
                                   nullptr);
}

// Whether another thread of this process has something to do: it may wait for a
// processor for longer than anybody would look.
bool OthersRun() {
  const std::string self = absl::StrCat(::gettid());
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) continue;
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const size_t name_ends = stat.rfind(") ");
    if (name_ends == std::string::npos) continue;  // it has ended
    const char state = stat[name_ends + 2];
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

}  // namespace

// --- The client.

bool HonestPeer::Write(v1::BrokerMessage message) {
  v1::ClientMessage answer;
  if (message.has_evict()) {
    Forget(message.evict().lease_id());
    answer.mutable_unmapped()->set_lease_id(message.evict().lease_id());
    answer.mutable_unmapped()->set_move(message.evict().move());
  } else if (message.has_map()) {
    answer.mutable_mapped()->set_lease_id(message.map().lease_id());
    answer.mutable_mapped()->set_move(message.map().move());
  }
  const bool went = FakePeer::Write(std::move(message));
  if (answer.has_unmapped() || answer.has_mapped())
    core_->HandleMessage(session, answer);
  return went;
}

absl::StatusOr<bool> HonestPeer::TrySend(const std::string& frame,
                                         absl::Span<const int> fds) {
  v1::BrokerFrame parsed;
  if (parsed.ParseFromString(frame) &&
      static_cast<size_t>(parsed.slabs().slab_bytes_size()) == fds.size()) {
    const base::MutexLock lock(&slabs_mu_);
    std::vector<Piece>& pieces = slabs_[parsed.slabs().lease_id()];
    if (parsed.slabs().first_slab() == 0) pieces.clear();
    for (size_t i = 0; i < fds.size(); ++i) {
      pieces.push_back({base::UniqueFd(::fcntl(fds[i], F_DUPFD_CLOEXEC, 0)),
                        parsed.slabs().slab_bytes(static_cast<int>(i))});
    }
  }
  return FakePeer::TrySend(frame, fds);
}

void HonestPeer::Fill(uint64_t lease, uint64_t value) {
  const base::MutexLock lock(&slabs_mu_);
  for (const Piece& piece : slabs_[lease]) {
    for (const uint64_t at : {uint64_t{0}, piece.bytes - sizeof(value)}) {
      EXPECT_EQ(::pwrite(piece.fd.get(), &value, sizeof(value),
                         static_cast<off_t>(at)),
                static_cast<ssize_t>(sizeof(value)));
    }
    ++value;
  }
}

std::string HonestPeer::WhatIsWrongIn(uint64_t lease, uint64_t value) {
  const base::MutexLock lock(&slabs_mu_);
  for (const Piece& piece : slabs_[lease]) {
    for (const uint64_t at : {uint64_t{0}, piece.bytes - sizeof(value)}) {
      uint64_t found = 0;
      if (::pread(piece.fd.get(), &found, sizeof(found),
                  static_cast<off_t>(at)) != sizeof(found) ||
          found != value) {
        return absl::StrCat("contents are lost: found ", found, " at ", at,
                            " of a slab instead of ", value);
      }
    }
    ++value;
  }
  return "";
}

void HonestPeer::Forget(uint64_t lease) {
  const base::MutexLock lock(&slabs_mu_);
  slabs_.erase(lease);
}

// --- The device.

absl::StatusOr<device::CreatedSlab> CountedAllocator::Create(uint64_t bytes) {
  absl::StatusOr<device::CreatedSlab> made = real_->Create(bytes);
  if (made.ok()) {
    slabs_[made->key] = bytes;
    *in_use_ += bytes;
  }
  return made;
}

absl::Status CountedAllocator::Destroy(device::SlabKey key) {
  absl::Status destroyed = real_->Destroy(key);
  const auto slab = slabs_.find(key);
  if (destroyed.ok() && slab != slabs_.end()) {
    *in_use_ -= slab->second;
    slabs_.erase(slab);
  }
  return destroyed;
}

// --- The world.

FaultWorld::FaultWorld(FaultyKeeper* its_keeper, SpareMemory* its_memory)
    : CoreFixture(Options(), PoolOnDemand(its_memory)),
      keeper_faults(its_keeper),
      spare(its_memory) {
  keeper_faults->SetReal(&keeper);
  auto faulty = std::make_unique<device::FaultyAllocator>(
      std::make_unique<CountedAllocator>(
          *device::OpenHostAllocator({kDevice, "host-0"}), &in_use_));
  device = faulty.get();
  PoolOptions options{
      *DeviceWorker::Create(std::move(faulty), keeper_faults, &slab_ids),
      NewCopier(),
      kPool,
      kPool,
      {.ready_slab_bytes = kSlab, .float_target_bytes = kSlab}};
  options.slabs.reuse_for = std::chrono::seconds(1);
  ticker = std::make_unique<Ticker>([this] { return core.Tick(); });
  EXPECT_TRUE(core.AddPool(std::move(options)).ok());
  SetTenant("owner", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
  SetTenant("other", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
}

std::shared_ptr<HonestPeer> FaultWorld::Join(const std::string& tenant) {
  auto peer = std::make_shared<HonestPeer>(&core);
  PeerIdentity identity;
  identity.origin = Origin::kTenantDirectory;
  identity.tenant_directory = tenant;
  EXPECT_TRUE(peer->Open(identity).ok());
  sessions.push_back(peer->session);
  return peer;
}

v1::BrokerMessage FaultWorld::AnswerOf(HonestPeer* peer, uint64_t request) {
  constexpr std::chrono::milliseconds kLook{5};
  constexpr std::chrono::hours kLongEnough{24};
  std::chrono::nanoseconds step = std::chrono::milliseconds(10);
  uint64_t before = 0;
  while (step < kLongEnough) {
    {
      const base::MutexLock lock(&peer->mu);
      const auto until = std::chrono::steady_clock::now() + kLook;
      do {
        for (const v1::BrokerMessage& message : peer->messages) {
          if (message.request_id() == request && !message.has_waiting())
            return message;
        }
      } while (peer->changed.WaitUntil(&peer->mu, until));
    }
    // Not while others are at work.
    const uint64_t now = Progress();
    const bool at_work = now != std::exchange(before, now);
    if (at_work || OthersRun()) continue;
    clock.Advance(step);
    step = step * 3 / 2;
    core.Tick();
  }
  unanswered_ = true;
  return {};
}

// Rises as long as threads of the core do anything.
uint64_t FaultWorld::Progress() const {
  uint64_t calls = spare->calls;
  for (const auto op : {FaultyKeeper::kPut, FaultyKeeper::kRemove})
    calls += keeper_faults->calls(op);
  for (const device::CopyFaults* faults : {&faults_out, &faults_in}) {
    for (const auto& of_kind : faults->calls) calls += of_kind;
  }
  return calls;
}

uint64_t FaultWorld::Lease(HonestPeer* peer, uint64_t bytes) {
  const v1::BrokerMessage answer =
      AnswerOf(peer, peer->Acquire(bytes, /*wait_seconds=*/3600));
  if (!answer.has_grant()) return 0;
  peer->Mapped(answer.grant().lease_id());
  return answer.grant().lease_id();
}

bool FaultWorld::Live() {
  owner_ = Join("owner");
  (void)AnswerOf(owner_.get(), owner_->SetGate(true));
  owners_lease_ = Lease(owner_.get(), 3 * kSlab);
  owner_->Fill(owners_lease_, kPattern);
  owner_->Park();
  const auto other = Join("other");
  const uint64_t large = Lease(other.get(), 5 * kSlab);  // in its way
  granted_both = owners_lease_ != 0 && large != 0;
  if (large != 0) {
    other->Forget(large);
    (void)AnswerOf(other.get(), other->Release(large));
  }
  const bool back =
      AnswerOf(owner_.get(), owner_->Restore(3600)).has_restored();
  restored = back && granted_both;
  // Else it may be on its way.
  if (back) {
    EXPECT_EQ(owner_->WhatIsWrongIn(owners_lease_, kPattern), "");
  }
  // One of an odd size, whose process dies.
  (void)Lease(other.get(), kSlab - 2 * kMiB);
  core.CloseSession(other->session, "it dies");
  const auto another = Join("other");
  if (const uint64_t small = Lease(another.get(), kSlab); small != 0) {
    another->Forget(small);
    (void)AnswerOf(another.get(), another->Release(small));
  }
  core.CloseSession(another->session, "it has ended");
  return !unanswered_;
}

bool FaultWorld::GoOn() {
  if (owners_lease_ != 0) {
    // The first one may meet what failed earlier.
    v1::BrokerMessage back;
    for (int i = 0; i < 3 && !back.has_restored(); ++i)
      back = AnswerOf(owner_.get(), owner_->Restore(3600));
    EXPECT_TRUE(back.has_restored()) << back.ShortDebugString();
    EXPECT_EQ(owner_->WhatIsWrongIn(owners_lease_, kPattern), "");
  }
  const auto served = Join("other");
  const uint64_t lease = Lease(served.get(), 2 * kSlab);
  EXPECT_NE(lease, 0U) << "nobody is served";
  core.CloseSession(served->session, "it has ended");
  return !unanswered_;
}

bool FaultWorld::IsSettled() {
  const v1::PoolStatus pool = core.Status().pools(0);
  // Memory that is kept for its tenant stays so on a device that is lost, and
  // while memory is missing.
  const bool stays = !pool.problem().empty() || pool.missing_bytes() > 0;
  return pool.granted_bytes() + pool.scrubbing_bytes() + pool.waiting() == 0 &&
         (stays || pool.returned_bytes() == 0);
}

std::string FaultWorld::EndAndCompare() {
  owner_->Forget(owners_lease_);
  for (const uint64_t session : sessions) core.CloseSession(session, "end");
  std::string wrong;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  do {
    clock.Advance(std::chrono::seconds(1));
    core.Tick();
    wrong = IsSettled() ? Compare()
                        : absl::StrCat("something is left: ",
                                       core.Status().ShortDebugString());
    // Its threads have the processor meanwhile.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  } while (!wrong.empty() && std::chrono::steady_clock::now() < deadline);
  return wrong;
}

// Slabs in the books are slabs of the keeper; what the device has in use beyond
// them is somebody's debt or said to be outside.
std::string FaultWorld::Compare() {
  const v1::GetStatusResponse status = core.Status();
  const v1::PoolStatus& pool = status.pools(0);
  const v1::HostPoolStatus& host = status.host_pool();
  if (SumOfParts(pool) != pool.capacity_bytes()) return "the sums are wrong";
  const uint64_t slabs = keeper.List().size();
  if (slabs != pool.slabs()) {
    return absl::StrCat("slabs: the books have ", pool.slabs(),
                        ", the keeper has ", slabs);
  }
  const uint64_t booked = pool.returned_bytes() + pool.ready_bytes() +
                          pool.unreturned_bytes() + pool.outside_bytes();
  const bool lost = !pool.problem().empty();  // nothing is read any more
  if (!lost && booked != in_use_) {
    return absl::StrCat("the books explain ", booked, " bytes, in use are ",
                        in_use_.load(), ": ", pool.ShortDebugString());
  }
  if (host.reserved_bytes() + host.placed_bytes() + host.held_bytes() != 0)
    return absl::StrCat("the host pool: ", host.ShortDebugString());
  if (faults_out.mapped + faults_in.mapped + faults_out.flying +
          faults_in.flying !=
      0) {
    return "a copier has something mapped, or under way";
  }
  const Records records = journal.All();
  if (!records.leases.empty() || !records.sessions.empty())
    return "something is left in the journal";
  return "";
}

}  // namespace gmb::broker
