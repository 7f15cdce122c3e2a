// Those who mean well, and how long they wait while somebody attacks.
#include "bench/attack/others.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/admin_client.h"
#include "client/cli/tenant_identity.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;
// An attack that locks out is seen as a long wait, not as a failure.
constexpr absl::Duration kOthersPatience = absl::Seconds(30);
constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(200);
constexpr int kWarmUp = 20;
constexpr size_t kCrowd = 60;  // a tenant may have 64
constexpr int kLeasesEach = 20;
constexpr int kMostCrowds = 20;
constexpr size_t kMostExecutorThreads = 2;  // gRPC sees one processor
constexpr size_t kOperators = 10;

absl::StatusOr<std::unique_ptr<Client>> Greet(const std::string& socket_dir,
                                              const char* tenant) {
  ClientOptions options;
  options.socket_dir = cli::TenantSocketDir(socket_dir, tenant);
  options.connect_timeout = kOthersPatience;
  return Client::Connect(std::move(options));
}

// How long the acquire took.
absl::StatusOr<double> LeaseOnce(Client* client) {
  AcquireOptions options;
  options.wait = kOthersPatience;
  const absl::Time start = absl::Now();
  absl::StatusOr<gmb::Lease> lease = client->Acquire(kBytes, options);
  const double ms = absl::ToDoubleMilliseconds(absl::Now() - start);
  if (!lease.ok()) return lease.status();
  const absl::Status released = std::move(*lease).Release();
  if (!released.ok()) return released;
  return ms;
}

// The session stays in `client`.
absl::Status Come(const std::string& socket_dir, const char* tenant,
                  std::unique_ptr<Client>* client) {
  auto greeted = Greet(socket_dir, tenant);
  if (!greeted.ok()) return greeted.status();
  *client = *std::move(greeted);
  for (int i = 0; i < kLeasesEach; ++i) {
    const absl::StatusOr<double> leased = LeaseOnce(client->get());
    if (!leased.ok()) return leased.status();
  }
  return absl::OkStatus();
}

absl::Status AskOnce(const std::string& socket_dir) {
  const auto admin = cli::AdminClient::Connect(socket_dir);
  if (!admin.ok()) return admin.status();
  return admin->GetStatus(v1::GetStatusRequest()).status();
}

absl::Status ServeCrowd(const std::string& socket_dir) {
  for (const char* const tenant : {kOther, kHonest}) {
    std::vector<absl::Status> said(kCrowd + kOperators);
    std::vector<std::unique_ptr<Client>> clients(kCrowd);
    std::vector<std::thread> crowd;
    for (size_t i = 0; i < kCrowd; ++i) {
      crowd.emplace_back(
          [&, i] { said[i] = Come(socket_dir, tenant, &clients[i]); });
    }
    for (size_t i = kCrowd; i < kCrowd + kOperators; ++i)
      crowd.emplace_back([&, i] { said[i] = AskOnce(socket_dir); });
    for (std::thread& one : crowd) one.join();
    for (const absl::Status& status : said)
      if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Of those that carry out what gRPC's connections leave to others.
size_t ExecutorThreads(pid_t broker) {
  size_t threads = 0;
  std::error_code error;
  const std::filesystem::directory_iterator tasks(
      absl::StrCat("/proc/", broker, "/task"), error);
  for (const auto& task : tasks) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "default-executo") ++threads;
  }
  return threads;
}

}  // namespace

absl::Status ServeCrowds(const std::string& socket_dir, pid_t broker) {
  for (int crowd = 0; crowd < kMostCrowds; ++crowd) {
    const absl::Status served = ServeCrowd(socket_dir);
    if (!served.ok()) return served;
    if (ExecutorThreads(broker) == kMostExecutorThreads) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Others>> Others::Start(
    const std::string& socket_dir) {
  absl::StatusOr<std::unique_ptr<Client>> honest = Greet(socket_dir, kHonest);
  if (!honest.ok()) return honest.status();
  for (int i = 0; i < kWarmUp; ++i) {
    const absl::StatusOr<double> leased = LeaseOnce(honest->get());
    if (!leased.ok()) return leased.status();
  }
  return std::unique_ptr<Others>(new Others(socket_dir, *std::move(honest)));
}

Others::Others(std::string socket_dir, std::unique_ptr<Client> honest)
    : socket_dir_(std::move(socket_dir)),
      honest_(std::move(honest)),
      leasing_([this] { Lease(); }),
      asking_([this] { Ask(); }) {}

Others::~Others() { (void)Stop(); }

Seen Others::Stop() {
  stopped_ = true;
  if (leasing_.joinable()) leasing_.join();
  if (asking_.joinable()) asking_.join();
  Seen seen = answers_;
  seen.acquire_ms = leases_.acquire_ms;
  seen.failures.insert(seen.failures.end(), leases_.failures.begin(),
                       leases_.failures.end());
  return seen;
}

void Others::Lease() {
  while (!stopped_) {
    const absl::StatusOr<double> ms = LeaseOnce(honest_.get());
    if (!ms.ok()) {
      leases_.failures.push_back(
          absl::StrCat("lease: ", ms.status().message()));
      return;
    }
    leases_.acquire_ms.push_back(*ms);
  }
}

void Others::Ask() {
  while (!stopped_) {
    const absl::Time start = absl::Now();
    const auto client = Greet(socket_dir_, kOther);
    const absl::Time greeted = absl::Now();
    if (!client.ok()) {
      answers_.failures.push_back(
          absl::StrCat("greeting: ", client.status().message()));
    }
    const auto admin = cli::AdminClient::Connect(socket_dir_);
    const absl::Status said =
        admin.ok() ? admin->GetStatus(v1::GetStatusRequest()).status()
                   : admin.status();
    const absl::Time answered = absl::Now();
    if (!said.ok())
      answers_.failures.push_back(absl::StrCat("status: ", said.message()));
    answers_.greeting_ms = std::max(
        answers_.greeting_ms, absl::ToDoubleMilliseconds(greeted - start));
    answers_.status_ms = std::max(
        answers_.status_ms, absl::ToDoubleMilliseconds(answered - greeted));
    absl::SleepFor(start + kBetweenQuestions - absl::Now());
  }
}

}  // namespace gmb::bench
