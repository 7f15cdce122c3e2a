#include "tests/component/reclaim_liars.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"

namespace gmb::component {
namespace {

constexpr int kBystanders = 0xB1;

bool Holds(const Lease& lease, int value) {
  const auto* const bytes = static_cast<const unsigned char*>(lease.data());
  return bytes[0] == value &&
         std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
}

}  // namespace

void ReclaimLiarsTest::SetUp() {
  BrokerOptions options;
  options.devices = {"host:64MiB"};
  options.flags = {"--host-pool=64MiB"};
  StartBroker(options);
  for (const std::string name : {"liar", "waiting", "bystander"})
    MakeTenant(name);
  bystander_ = ConnectAs("bystander");
  whole_ = bystander_->Acquire(4 * kMiB, WaitFor(kLong)).value();
  std::memset(whole_.data(), kBystanders, whole_.size_bytes());
  ASSERT_TRUE(Await([&] { return Status().host_pool().done(); }));
  before_ = Settle();
  watch_ = StartGmb("watch", {"watch"});
  uint64_t limit = 32 * kMiB;
  ASSERT_TRUE(Await([&] {  // it misses what happens before it listens
    MakeTenant("bystander", 0, limit += 2 * kMiB);
    return absl::StrContains(watch_->Out(), "tenant_changed");
  }));
  MakeTenant("bystander");
}

void ReclaimLiarsTest::TearDown() {
  if (watch_ != nullptr) {
    watch_->Signal(SIGINT);
    (void)watch_->AwaitExit();
  }
  EXPECT_TRUE(Holds(whole_, kBystanders));
  ExpectServed("waiting");
  ExpectBackTo(before_);
  EXPECT_EQ(Status().host_pool().reserved_bytes(), 0U);
  if (HasFailure()) std::fputs(broker().Log().c_str(), stderr);
  EXPECT_TRUE(std::move(whole_).Release().ok());
  bystander_.reset();
  ComponentTest::TearDown();
}

std::unique_ptr<Liar> ReclaimLiarsTest::OpenLiar() const {
  return std::make_unique<Liar>(TenantDir("liar"));
}

std::unique_ptr<Liar> ReclaimLiarsTest::OpenParked(uint64_t* lease) const {
  auto liar = OpenLiar();
  liar->TurnGateOn();
  *lease = liar->Acquire(kLiarBytes);
  liar->Park();
  return liar;
}

void ReclaimLiarsTest::LetTerminate(const std::string& tenant) {
  v1::SetTenantRequest request;
  request.set_name(tenant);
  request.set_may_terminate(true);
  EXPECT_TRUE(SetTenant(request).ok());
}

absl::Status ReclaimLiarsTest::Take(uint64_t bytes, absl::Duration wait) const {
  const auto client = ConnectAs("waiting");
  if (client == nullptr) return absl::InternalError("it could not connect");
  auto lease = client->Acquire(bytes, WaitFor(wait));
  if (!lease.ok()) return lease.status();
  // Zero, or what this tenant wrote before.
  const auto* const words = static_cast<const uint64_t*>(lease->data());
  const bool own = std::all_of(
      words, words + lease->size_bytes() / sizeof(uint64_t),
      [](uint64_t word) { return word == 0 || word == 0x5A5A5A5A5A5A5A5A; });
  if (!own) return absl::DataLossError("it is another's");
  std::memset(lease->data(), 0x5A, lease->size_bytes());
  if (!Holds(*lease, 0x5A)) return absl::DataLossError("it does not hold");
  return std::move(*lease).Release();
}

std::future<absl::Status> ReclaimLiarsTest::Wait(absl::Duration wait) {
  return std::async(std::launch::async,
                    [this, wait] { return Take(kWaitingBytes, wait); });
}

std::optional<v1::SessionInfo> ReclaimLiarsTest::Session(uint64_t id) const {
  const auto list = admin().ListSessions(v1::ListSessionsRequest());
  EXPECT_TRUE(list.ok()) << list.status();
  if (!list.ok()) return std::nullopt;
  for (const v1::SessionInfo& session : list->sessions()) {
    if (session.id() == id) return session;
  }
  return std::nullopt;
}

std::optional<v1::LeaseInfo> ReclaimLiarsTest::LeaseOf(uint64_t id) const {
  const auto list = admin().ListLeases(v1::ListLeasesRequest());
  EXPECT_TRUE(list.ok()) << list.status();
  if (!list.ok()) return std::nullopt;
  for (const v1::LeaseInfo& lease : list->leases()) {
    if (lease.id() == id) return lease;
  }
  return std::nullopt;
}

bool ReclaimLiarsTest::AwaitState(uint64_t lease,
                                  v1::LeaseInfo::State state) const {
  return Await([&] {
    const auto info = LeaseOf(lease);
    return info.has_value() && info->state() == state;
  });
}

}  // namespace gmb::component
