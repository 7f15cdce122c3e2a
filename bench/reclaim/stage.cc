#include "bench/reclaim/stage.h"

#include <poll.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/reclaim/neighbour.h"
#include "client/cli/tenant_identity.h"
#include "proto/amount_text.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kStagePatience = absl::Minutes(1);
constexpr absl::Duration kPageLocking = absl::Minutes(3);
constexpr char kOwner[] = "owner";
constexpr char kTaker[] = "taker";
constexpr char kFiller[] = "filler";
constexpr char kNeighbour[] = "neighbour";
constexpr char kTenants[] =
    "tenants:\n"
    "  - {name: owner, limit: 100%, min_residency: 0s}\n"
    "  - {name: taker, limit: 100%}\n"
    "  - {name: filler, limit: 100%}\n"
    "  - {name: neighbour, limit: 100%}\n";

// Looks until there is an answer or the patience is over.
absl::Status Await(const char* what, absl::Duration patience,
                   const std::function<absl::StatusOr<bool>()>& there) {
  const absl::Time deadline = absl::Now() + patience;
  for (;;) {
    const absl::StatusOr<bool> looked = there();
    if (!looked.ok()) return looked.status();
    if (*looked) return absl::OkStatus();
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("waited for ", what));
    }
    poll(nullptr, 0, 1);
  }
}

absl::StatusOr<std::unique_ptr<Client>> ConnectTo(
    const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  return Client::Connect(std::move(options));
}

}  // namespace

std::string Stage::SocketDir(const char* tenant) const {
  return cli::TenantSocketDir(broker_->socket_dir(), tenant);
}

absl::StatusOr<std::unique_ptr<Stage>> Stage::Open(
    const ReclaimOptions& options, const std::string& dir) {
  std::unique_ptr<Stage> stage(new Stage());
  absl::Status status = stage->Start(options, dir);
  if (status.ok()) status = stage->Connect(dir);
  if (status.ok()) status = stage->AwaitHostPool();
  if (!status.ok()) return status;
  return stage;
}

absl::Status Stage::Start(const ReclaimOptions& options,
                          const std::string& dir) {
  const absl::StatusOr<std::string> program = cli::FindBroker();
  if (!program.ok()) return program.status();
  cli::BrokerProcess::Options broker;
  broker.program = *program;
  // Released memory is to be clear before the next round.
  broker.device_flags = {"--device",    options.device,     "--reuse-for",
                         "0s",          "--drain-deadline", "1s",
                         "--host-pool", options.host_pool};
  if (!options.pool.empty()) {
    broker.device_flags.insert(broker.device_flags.end(),
                               {"--pool", options.pool});
  }
  broker.config = kTenants;
  broker.dir = dir;
  auto started = cli::BrokerProcess::Start(broker);
  if (!started.ok()) return started.status();
  broker_ = *std::move(started);
  return absl::OkStatus();
}

absl::Status Stage::Connect(const std::string& dir) {
  log_ = dir + "/tenants.log";
  events_ = std::make_unique<EventLog>(&broker_->admin());
  // A connection is an event: when one comes, the others will.
  const absl::Status watched = Await(
      "the broker's events", kStagePatience, [this]() -> absl::StatusOr<bool> {
        auto taker = ConnectTo(SocketDir(kTaker));
        if (!taker.ok()) return taker.status();
        taker_ = *std::move(taker);
        return events_->AwaitAny(absl::Milliseconds(200));
      });
  if (!watched.ok()) return watched;
  uuid_ = taker_->devices().front().uuid;
  auto filler = ConnectTo(SocketDir(kFiller));
  if (!filler.ok()) return filler.status();
  filler_ = *std::move(filler);
  return absl::OkStatus();
}

absl::Status Stage::AwaitHostPool() {
  return Await("the host pool", kPageLocking, [this]() -> absl::StatusOr<bool> {
    const absl::StatusOr<v1::GetStatusResponse> status = Status();
    if (!status.ok()) return status.status();
    host_pool_ = status->host_pool();
    pool_bytes_ = status->pools(0).capacity_bytes();
    return host_pool_.bytes() == 0 || host_pool_.done();
  });
}

absl::StatusOr<v1::GetStatusResponse> Stage::Status() const {
  absl::StatusOr<v1::GetStatusResponse> status =
      broker_->admin().GetStatus(v1::GetStatusRequest());
  if (status.ok() && status->pools_size() != 1)
    return absl::InternalError("the broker is to have one pool");
  return status;
}

std::string Stage::TooLarge(uint64_t bytes) const {
  const auto says = [&](const char* what, uint64_t has) {
    return absl::StrCat("skipped: the ", what, " of ", proto::FormatBytes(has),
                        " is smaller than ", proto::FormatBytes(bytes));
  };
  if (bytes > pool_bytes_) return says("device pool", pool_bytes_);
  const uint64_t usable = host_pool_.bytes() - host_pool_.failed_bytes();
  return bytes > usable ? says("host pool", usable) : "";
}

absl::StatusOr<Owner> Stage::StartOwner(const Owner::Leases& leases) {
  return Owner::Start(SocketDir(kOwner), uuid_, leases, log_);
}

absl::StatusOr<Child> Stage::StartNeighbour(const std::string& kernel,
                                            uint64_t bytes) {
  return Child::Start({kNeighbourFlag, kernel, SocketDir(kNeighbour), uuid_,
                       absl::StrCat(bytes)},
                      log_);
}

absl::Status Stage::Fill() {
  const absl::StatusOr<v1::GetStatusResponse> status = Status();
  if (!status.ok()) return status.status();
  const v1::PoolStatus& pool = status->pools(0);
  const uint64_t free_bytes = pool.ready_bytes() + pool.float_bytes();
  if (free_bytes == 0) return absl::OkStatus();
  AcquireOptions request;
  request.device = uuid_;
  request.contents = Contents::kResident;
  request.wait = kStagePatience;
  absl::StatusOr<Lease> lease = filler_->Acquire(free_bytes, request);
  if (!lease.ok()) return lease.status();
  filling_ = *std::move(lease);
  return absl::OkStatus();
}

absl::Status Stage::Unfill() {
  if (!filling_.empty()) {
    absl::Status released = std::move(filling_).Release();
    if (!released.ok()) return released;
  }
  // The processes of the section are gone; the broker sees it a little later.
  absl::Status gone = Await(
      "all leases to end", kStagePatience, [this]() -> absl::StatusOr<bool> {
        const absl::StatusOr<v1::GetStatusResponse> status = Status();
        if (!status.ok()) return status.status();
        return status->pools(0).granted_bytes() == 0;
      });
  return gone.ok() ? AwaitRest() : gone;
}

absl::StatusOr<Stage::Taken> Stage::Take(uint64_t bytes) {
  AcquireOptions request;
  request.device = uuid_;
  request.contents = Contents::kResident;  // needs no room in the host pool
  request.wait = kStagePatience;
  const absl::Time start = absl::Now();
  absl::StatusOr<Lease> lease = taker_->Acquire(bytes, request);
  const absl::Duration took = absl::Now() - start;
  if (!lease.ok()) return lease.status();
  return Taken{*std::move(lease), took};
}

absl::StatusOr<v1::SessionInfo> Stage::OwnersSession() const {
  v1::ListSessionsRequest request;
  request.set_tenant(kOwner);
  const absl::StatusOr<v1::ListSessionsResponse> sessions =
      broker_->admin().ListSessions(request);
  if (!sessions.ok()) return sessions.status();
  if (sessions->sessions_size() != 1)
    return absl::InternalError("one owner is to run");
  return sessions->sessions(0);
}

absl::Status Stage::AwaitParked(const absl::Duration& last_restore,
                                absl::Time restored) {
  constexpr absl::Duration kMargin = absl::Milliseconds(30);
  const absl::Time young_until = restored + 4 * last_restore + kMargin;
  return Await(
      "the owner to park", kStagePatience, [&]() -> absl::StatusOr<bool> {
        if (absl::Now() < young_until) return false;
        const absl::StatusOr<v1::SessionInfo> session = OwnersSession();
        if (!session.ok()) return session.status();
        return session->gate() == v1::SessionInfo::GATE_PARKED;
      });
}

absl::StatusOr<uint64_t> Stage::BackedBytes() const {
  const absl::StatusOr<v1::SessionInfo> session = OwnersSession();
  if (!session.ok()) return session.status();
  return session->backed_bytes();
}

absl::Status Stage::AwaitRest() const {
  return Await(
      "the pool to rest", kStagePatience, [this]() -> absl::StatusOr<bool> {
        const absl::StatusOr<v1::GetStatusResponse> status = Status();
        if (!status.ok()) return status.status();
        const v1::PoolStatus& pool = status->pools(0);
        return pool.returned_bytes() == 0 && pool.scrubbing_bytes() == 0 &&
               pool.unreturned_bytes() == 0 &&
               pool.float_bytes() <= 2 * pool.ready_slab_bytes();
      });
}

}  // namespace gmb::bench
