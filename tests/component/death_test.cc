// Processes that are killed, stopped or forked, and brokers that are.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/unique_fd.h"
#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class DeathTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    for (const std::string name : {"a", "b", "c"}) MakeTenant(name);
    before_ = Settle();
  }
  std::unique_ptr<Program> Hold(const std::string& tenant,
                                const std::string& bytes) const {
    auto hold =
        StartGmb("hold-" + tenant, {"hold", "--tenant", tenant, "--bytes",
                                    bytes, "--fill", "0xA5", "--wait", "60s"});
    return hold;
  }
  Footprint before_;
};

TEST_F(DeathTest, MemoryOfAKilledProcessIsGrantedToOneThatWaitsAndIsZero) {
  for (int round = 0; round < 3; ++round) {
    const auto holder = Hold("a", "200MiB");
    ASSERT_TRUE(holder->AwaitOut("holding")) << holder->Err();
    const auto client = ConnectAs("b");
    std::promise<void> waits;
    AcquireOptions options = WaitFor(absl::Seconds(60));
    options.on_waiting = [&](uint64_t) { waits.set_value(); };
    auto granted = std::async(std::launch::async, [&] {
      return client->Acquire(128 * kMiB, options);
    });
    waits.get_future().wait();
    const absl::Time killed = absl::Now();
    holder->Signal(SIGKILL);
    auto lease = granted.get();
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_LT(absl::Now() - killed, absl::Seconds(20));
    const auto* const bytes = static_cast<const char*>(lease->data());
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(std::memcmp(bytes, bytes + 1, lease->size_bytes() - 1), 0);
    EXPECT_EQ(holder->AwaitExit(), 128 + SIGKILL);
  }
  ExpectBackTo(before_);
}

TEST_F(DeathTest, AStoppedProcessStallsNobodyAndGoesOnLater) {
  const auto stopped = Hold("a", "64MiB");
  ASSERT_TRUE(stopped->AwaitOut("holding")) << stopped->Err();
  stopped->Signal(SIGSTOP);
  absl::Duration slowest;
  for (int i = 0; i < 20; ++i) {
    const absl::Time asked = absl::Now();
    ExpectServed(i % 2 == 0 ? "b" : "c");
    slowest = std::max(slowest, absl::Now() - asked);
  }
  EXPECT_LT(slowest, absl::Seconds(8));
  EXPECT_EQ(Pool().granted_bytes(), 64 * kMiB);
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "32MiB", "--yes"}).exit_code,
            0);
  stopped->Signal(SIGCONT);
  EXPECT_TRUE(stopped->AwaitOut("budget")) << stopped->Out();
  stopped->Signal(SIGTERM);
  EXPECT_EQ(stopped->AwaitExit(), 0) << stopped->Err();
  EXPECT_THAT(stopped->Out(), HasSubstr("released"));
  ExpectBackTo(before_);
}

TEST_F(DeathTest, AForkedChildFailsClearlyAndItsParentGoesOn) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok());
  std::memset(lease->data(), 0x11, lease->size_bytes());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    const auto failed = [](const absl::Status& status) {
      return absl::IsFailedPrecondition(status) &&
             absl::StrContains(status.message(), "forked");
    };
    if (!failed(client->Acquire(kMiB).status())) ::_exit(1);
    if (!failed(client->GetQuota().status())) ::_exit(2);
    if (!failed(std::move(*lease).Release())) ::_exit(3);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(static_cast<char*>(lease->data())[0], 0x11);
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(Pool().granted_bytes(), 4 * kMiB);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_TRUE(client->Acquire(4 * kMiB).ok());
}

TEST_F(DeathTest, AKilledBrokerLeavesBytesReadableAndASuccessorServes) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(8 * kMiB);
  ASSERT_TRUE(lease.ok());
  std::memset(lease->data(), 0x22, lease->size_bytes());
  KillBroker();
  const absl::Status status = client->Acquire(2 * kMiB).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(client->GetQuota().status()));
  EXPECT_TRUE(absl::IsUnavailable(client->status()));
  EXPECT_EQ(Gmb({"status", "--quiet"}).exit_code, 3);
  EXPECT_EQ(static_cast<char*>(lease->data())[8 * kMiB - 1], 0x22);

  StartBroker();
  ExpectServed("a");  // the quotas were stored
  EXPECT_TRUE(absl::IsUnavailable(client->Acquire(2 * kMiB).status()));
  EXPECT_EQ(static_cast<char*>(lease->data())[0], 0x22);
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

// Keeps what this process writes to standard error, while it lives.
class StandardError {
 public:
  explicit StandardError(const std::string& file)
      : file_(file), saved_(::dup(STDERR_FILENO)) {
    const base::UniqueFd to(
        ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    ::dup2(to.get(), STDERR_FILENO);
  }
  ~StandardError() { ::dup2(saved_.get(), STDERR_FILENO); }
  [[nodiscard]] std::string Text() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const std::string file_;
  const base::UniqueFd saved_;
};

TEST_F(DeathTest, TheLibraryWritesNothingToStandardErrorWhateverHappens) {
  const StandardError error(Directory() + "/stderr");
  ASSERT_EQ(::write(STDERR_FILENO, "seen\n", 5), 5);
  auto client = ConnectAs("a");
  auto lease = client->Acquire(8 * kMiB);
  ASSERT_TRUE(lease.ok());
  auto waiting = std::async(std::launch::async, [&] {
    return client->Acquire(256 * kMiB, WaitFor(absl::Seconds(60))).status();
  });
  EXPECT_FALSE(Client::Connect(OptionsFor(TenantDir("nobody"))).ok());
  EXPECT_TRUE(Await([this] { return Pool().waiting() == 1; }));
  KillBroker();
  EXPECT_TRUE(absl::IsUnavailable(waiting.get()));
  EXPECT_TRUE(absl::IsUnavailable(client->GetQuota().status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Acquire(2 * kMiB).status()));
  EXPECT_FALSE(Client::Connect(OptionsFor(TenantDir("a"))).ok());
  EXPECT_TRUE(std::move(*lease).Release().ok());
  client.reset();
  EXPECT_EQ(error.Text(), "seen\n");
}

TEST_F(DeathTest, ADrainingBrokerTellsItsClientsAndEndsWithTheLast) {
  std::promise<absl::Duration> told;
  ClientOptions options = OptionsFor(TenantDir("a"));
  options.on_draining = [&](absl::Duration left) { told.set_value(left); };
  auto client = Client::Connect(options);
  ASSERT_TRUE(client.ok());
  auto lease = (*client)->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok());
  broker().program().Signal(SIGTERM);
  EXPECT_LE(told.get_future().get(), absl::Seconds(5));
  const auto reason = [](const absl::Status& status) {
    return GetErrorDetail(status).value_or(ErrorDetail()).reason;
  };
  EXPECT_EQ(reason((*client)->Acquire(2 * kMiB).status()),
            ErrorReason::kDraining);
  EXPECT_EQ(reason(Client::Connect(OptionsFor(TenantDir("b"))).status()),
            ErrorReason::kDraining);
  EXPECT_EQ(Gmb({"status", "--quiet"}).exit_code, 1);
  EXPECT_TRUE(broker().program().IsRunning());
  EXPECT_TRUE(std::move(*lease).Release().ok());
  client->reset();
  EXPECT_EQ(broker().program().AwaitExit(), 0);
}

}  // namespace
}  // namespace gmb::component
