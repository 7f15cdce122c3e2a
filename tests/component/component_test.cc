#include "tests/component/component_test.h"

#include <signal.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "tests/pool_sum.h"

namespace gmb::component {

std::ostream& operator<<(std::ostream& out, const Footprint& f) {
  return out << "fds " << f.fds << ", sessions " << f.sessions << ", leases "
             << f.leases << ", handles " << f.handles << ", granted "
             << f.granted_bytes << ", unreturned " << f.unreturned_bytes
             << ", missing " << f.missing_bytes << ", ready " << f.ready_bytes
             << ", waiting " << f.waiting << ", resident " << f.resident_bytes;
}

ClientOptions OptionsFor(const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  options.connect_timeout = absl::Seconds(60);  // the machine may be busy
  return options;
}

AcquireOptions WaitFor(absl::Duration wait) {
  AcquireOptions options;
  options.wait = wait;
  return options;
}

void ComponentTest::TearDown() {
  if (broker_ != nullptr) StopBroker();
}

// However the test has used it: in each answer the parts of a pool are all of it,
// and no tenant has more than the pools have granted.
void ComponentTest::ExpectTheBooksAddUp() const {
  const auto status = admin_->GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return;  // it ends already, or has no room for operators
  for (const v1::PoolStatus& pool : status->pools())
    EXPECT_EQ(SumOfParts(pool), pool.capacity_bytes()) << pool.DebugString();
  const v1::HostPoolStatus& host = status->host_pool();
  EXPECT_LE(host.placed_bytes(), host.bytes()) << host.DebugString();
  EXPECT_LE(host.held_bytes(), host.placed_bytes()) << host.DebugString();
}

void ComponentTest::StopBroker() {
  ExpectTheBooksAddUp();
  admin_.reset();
  broker_->program().Signal(SIGTERM);
  EXPECT_EQ(broker_->program().AwaitExit(), 0) << broker_->Log();
  EXPECT_EQ(broker_->program().SanitizerReport(), "");
  broker_.reset();
}

void ComponentTest::StartBroker(const BrokerOptions& options) {
  broker_ = std::make_unique<BrokerProcess>(Directory(), options);
  admin_ = broker_->AwaitServing();
  if (admin_ == nullptr) {
    const std::string log = broker_->Log();
    broker_.reset();
    throw std::runtime_error("gmbd does not serve: " + log);
  }
}

void ComponentTest::KillBroker() {
  admin_.reset();
  broker_->program().Signal(SIGKILL);
  EXPECT_EQ(broker_->program().AwaitExit(), 128 + SIGKILL);
  EXPECT_EQ(broker_->program().SanitizerReport(), "");
  broker_.reset();
}

absl::StatusOr<v1::SetTenantResponse> ComponentTest::SetTenant(
    const v1::SetTenantRequest& request) const {
  return admin_->SetTenant(request);
}

void ComponentTest::MakeTenant(const std::string& name,
                               uint64_t guarantee_bytes, uint64_t limit_bytes) {
  v1::SetTenantRequest request;
  request.set_name(name);
  request.mutable_guarantee()->set_bytes(guarantee_bytes);
  if (limit_bytes > 0) {
    request.mutable_limit()->set_bytes(limit_bytes);
  } else {
    request.mutable_limit()->set_fraction(1);
  }
  const auto answer = SetTenant(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
}

v1::GetStatusResponse ComponentTest::Status() const {
  auto status = admin_->GetStatus(v1::GetStatusRequest());
  EXPECT_TRUE(status.ok()) << status.status();
  if (status.ok() && status->pools_size() > 0) return *std::move(status);
  v1::GetStatusResponse none;
  none.add_pools();
  return none;
}

std::unique_ptr<Client> ComponentTest::ConnectAs(
    const std::string& tenant) const {
  auto client = Client::Connect(OptionsFor(TenantDir(tenant)));
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

void ComponentTest::ExpectServed(const std::string& tenant) const {
  const std::unique_ptr<Client> client = ConnectAs(tenant);
  ASSERT_NE(client, nullptr);
  absl::StatusOr<Lease> lease =
      client->Acquire(2 * kMiB, WaitFor(absl::Seconds(30)));
  ASSERT_TRUE(lease.ok()) << lease.status();
  auto* const bytes = static_cast<unsigned char*>(lease->data());
  // Zero, or what this tenant wrote here before.
  EXPECT_TRUE(bytes[0] == 0 || bytes[0] == 0x5A);
  std::memset(bytes, 0x5A, lease->size_bytes());
  EXPECT_EQ(bytes[lease->size_bytes() - 1], 0x5A);
  const absl::Status released = std::move(*lease).Release();
  EXPECT_TRUE(released.ok()) << released;
}

Footprint ComponentTest::Measure() {
  const v1::GetStatusResponse status = Status();
  Footprint footprint{.fds = broker_->OpenFds(),
                      .sessions = status.sessions(),
                      .leases = status.leases(),
                      .handles = status.handles()};
  if (!kInstrumented) footprint.resident_bytes = broker_->ResidentBytes();
  for (const v1::PoolStatus& pool : status.pools()) {
    footprint.granted_bytes += pool.granted_bytes();
    footprint.unreturned_bytes += pool.unreturned_bytes();
    footprint.missing_bytes += pool.missing_bytes();
    footprint.ready_bytes += pool.ready_bytes();
    footprint.waiting += pool.waiting();
  }
  return footprint;
}

Footprint ComponentTest::Settle() {
  Footprint last = Measure();
  int unchanged = 0;
  const bool settled = Await([&] {
    const v1::PoolStatus pool = Pool();
    const bool busy = pool.returned_bytes() > 0 || pool.scrubbing_bytes() > 0;
    const Footprint now = Measure();
    last.resident_bytes = now.resident_bytes;
    unchanged = !busy && now == last ? unchanged + 1 : 0;
    last = now;
    return unchanged >= 10;
  });
  EXPECT_TRUE(settled) << last;
  return last;
}

void ComponentTest::ExpectBackTo(const Footprint& before) {
  Footprint now;
  const bool back = Await([&] {
    now = Measure();
    // Fewer, when something of an earlier client was still to be closed then.
    const size_t fds = std::exchange(now.fds, before.fds);
    const uint64_t resident =
        std::exchange(now.resident_bytes, before.resident_bytes);
    const bool all_else = now == before;
    now.fds = fds;
    now.resident_bytes = resident;
    return all_else && fds <= before.fds &&
           resident <= before.resident_bytes + kKeptByAllocators;
  });
  EXPECT_TRUE(back) << "before: " << before << "\nnow:    " << now << "\nfds:\n"
                    << broker_->FdNames();
}

Said ComponentTest::Gmb(std::vector<std::string> words) const {
  Program gmb(Directory(), "gmb", [&] {
    words.insert(words.begin(), {GMB_PROGRAM, "--socket-dir", SocketDir()});
    return words;
  }());
  const int code = gmb.AwaitExit();
  EXPECT_EQ(gmb.SanitizerReport(), "");
  return {code, gmb.Out(), gmb.Err()};
}

std::unique_ptr<Program> ComponentTest::StartGmb(
    const std::string& name, std::vector<std::string> words) const {
  words.insert(words.begin(), {GMB_PROGRAM, "--socket-dir", SocketDir()});
  return std::make_unique<Program>(Directory(), name, words);
}

}  // namespace gmb::component
