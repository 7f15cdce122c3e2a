// `gmb upgrade`: another gmbd in the place of the one that runs, under load, and
// the same one again where the new one does not do.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "client/session/broker_process.h"
#include "nlohmann/json.hpp"
#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Clients that acquire and release all the time.
class Load {
 public:
  struct Acquire {
    absl::Time began;
    absl::Duration took;
  };

  explicit Load(std::vector<std::unique_ptr<Client>> clients)
      : clients_(std::move(clients)), done_(clients_.size()) {
    for (size_t i = 0; i < clients_.size(); ++i)
      threads_.emplace_back([this, i] { Go(clients_[i].get(), &done_[i]); });
  }
  ~Load() { (void)Stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Until each client has had a few more.
  [[nodiscard]] bool AwaitMore() {
    const uint64_t enough = count_ + 10 * clients_.size();
    return Await([&] { return count_ >= enough || failed_; });
  }
  // All that was acquired. Those that failed are failures of the test.
  std::vector<Acquire> Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    std::vector<Acquire> all;
    for (const std::vector<Acquire>& its : done_)
      all.insert(all.end(), its.begin(), its.end());
    return all;
  }

 private:
  void Go(Client* client, std::vector<Acquire>* done) {
    while (!stop_) {
      const absl::Time began = absl::Now();
      auto lease = client->Acquire(2 * kMiB, WaitFor(absl::Minutes(2)));
      done->push_back({began, absl::Now() - began});
      ++count_;
      const absl::Status released =
          lease.ok() ? std::move(*lease).Release() : lease.status();
      EXPECT_TRUE(released.ok()) << released;
      if (released.ok()) continue;
      failed_ = true;
      return;
    }
  }

  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::vector<Acquire>> done_;
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::vector<std::thread> threads_;
};

class UpgradeTest : public RestartFixture {
 protected:
  void SetUp() override {
    RestartFixture::SetUp();
    // The brokers that the command starts are this process's then.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    StartBroker(Options());
    MakeTenant("a");
  }
  // Those that the command has started end here, in order.
  void TearDown() override {
    if (Serving() != broker().program().pid()) {
      EXPECT_EQ(Gmb({"drain", "--yes"}).exit_code, 0);
      EXPECT_EQ(KeeperStatus().entries, 0U);
    }
    RestartFixture::TearDown();
  }

  [[nodiscard]] BrokerOptions Options() const override {
    BrokerOptions options = RestartFixture::Options();
    options.config = "tenants: [{name: file}]\n";
    return options;
  }
  [[nodiscard]] pid_t Serving() const {
    const auto found = internal::FindBrokerProcess(SocketDir());
    return found.ok() ? found->pid : 0;
  }
  Said Upgrade(const std::vector<std::string>& words) const {
    std::vector<std::string> all = {"upgrade", "--output", "json"};
    all.insert(all.end(), words.begin(), words.end());
    return Gmb(all);
  }
  // Passes the check, and then does this.
  [[nodiscard]] std::string Script(const std::string& then) const {
    const std::string path = Directory() + "/gmbd-new";
    std::ofstream(path) << "#!/bin/sh\n"
                           "case \"$*\" in *--check-handover*) echo 'it could "
                           "take over'; exit 0;; esac\n"
                        << then << "\n";
    ::chmod(path.c_str(), 0700);
    return path;
  }
  // A client, and a lease with words in it.
  void Hold() {
    client_ = ConnectAs("a");
    auto lease = client_->Acquire(10 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    lease_ = std::make_unique<Lease>(*std::move(lease));
    words_ = static_cast<uint64_t*>(lease_->data());
    for (uint64_t i = 0; i < kWords; ++i) words_[i] = i * 0x9E3779B97F4A7C15U;
  }
  void ExpectHeld() const {
    EXPECT_TRUE(client_->status().ok()) << client_->status();
    for (uint64_t i = 0; i < kWords; ++i)
      ASSERT_EQ(words_[i], i * 0x9E3779B97F4A7C15U);
    EXPECT_TRUE(client_->Acquire(2 * kMiB, WaitFor(absl::Minutes(2))).ok());
  }

  static constexpr uint64_t kWords = 10 * kMiB / 8;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Lease> lease_;
  uint64_t* words_ = nullptr;
};

int CountOf(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// `on_stop` is drain here, which would end everybody's session.
TEST_F(UpgradeTest, UnderLoadNoRequestFails) {
  Hold();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = CountOf("GMB_UPGRADE_CLIENTS", 4); i > 0; --i)
    clients.push_back(ConnectAs("a"));
  Load load(std::move(clients));
  ASSERT_TRUE(load.AwaitMore());
  const pid_t old = Serving();
  const Said said = Upgrade({"--wait", "2m"});
  const absl::Time end = absl::Now();
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(load.AwaitMore());
  std::vector<Load::Acquire> all = load.Stop();
  EXPECT_EQ(broker().program().AwaitExit(), 0);
  const auto json = nlohmann::json::parse(said.out);
  EXPECT_EQ(json["old_pid"], old);
  EXPECT_EQ(json["pid"], Serving());
  EXPECT_NE(Serving(), old);
  ExpectHeld();
  // For docs/performance.md: those of the second that begins with the signal.
  const absl::Duration away = absl::Seconds(json["away_seconds"].get<double>());
  const absl::Time signal = end - away;
  std::erase_if(all, [signal](const Load::Acquire& acquire) {
    return acquire.began + acquire.took < signal ||
           acquire.began > signal + absl::Seconds(1);
  });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.took < b.took; });
  if (all.empty()) return;
  const auto ms = [](absl::Duration took) {
    return std::to_string(absl::ToDoubleMilliseconds(took));
  };
  RecordProperty("acquires", static_cast<int>(all.size()));
  RecordProperty("p99_ms", ms(all[all.size() * 99 / 100].took));
  RecordProperty("worst_ms", ms(all.back().took));
  RecordProperty("away_ms", ms(away));
}

TEST_F(UpgradeTest, WhatDoesNotReadItAllChangesNothing) {
  Hold();
  const pid_t old = Serving();
  EXPECT_EQ(Upgrade({"--check"}).exit_code, 0);
  std::ofstream(Directory() + "/gmb.yaml") << "tenants: 7\n";
  const Said refused = Upgrade({});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("nothing was changed"), HasSubstr("gmb.yaml")));
  EXPECT_EQ(Upgrade({"--binary", "/bin/false"}).exit_code, 1);
  EXPECT_EQ(Upgrade({"--binary", Directory() + "/none"}).exit_code, 1);
  EXPECT_EQ(Serving(), old);
  EXPECT_THAT(broker().Log(), Not(HasSubstr(" detached ")));
  ExpectHeld();
}

TEST_F(UpgradeTest, TheOldOneIsBackWhereTheNewOneDoesNotServe) {
  Hold();
  const Said ends = Upgrade({"--binary", Script("exit 7")});
  EXPECT_EQ(ends.exit_code, 1);
  EXPECT_THAT(ends.err, AllOf(HasSubstr("exit code 7"),
                              HasSubstr("the old one serves again")));
  EXPECT_EQ(broker().program().AwaitExit(), 0);
  ExpectHeld();
  // The one that is back can be replaced as well.
  const pid_t back = Serving();
  const Said hangs =
      Upgrade({"--binary", Script("exec sleep 1000"), "--wait", "300ms"});
  EXPECT_EQ(hangs.exit_code, 1);
  EXPECT_THAT(hangs.err, AllOf(HasSubstr("it had 300ms for it"),
                               HasSubstr("the old one serves again")));
  EXPECT_NE(Serving(), back);
  ExpectHeld();
}

// The case that --check-handover does not see: the file does not fit the pool,
// so that the old program would not start either.
TEST_F(UpgradeTest, WhereNeitherStartsAllWaitsForOneThatDoes) {
  Hold();
  const std::string file = Directory() + "/gmb.yaml";
  std::ofstream(file) << "tenants: [{name: file, guarantee: 500MiB}]\n";
  const Said said = Upgrade({});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.err,
              AllOf(HasSubstr("NO BROKER SERVES"), HasSubstr("exit code 1"),
                    HasSubstr("The keeper has all"), HasSubstr(file)));
  EXPECT_EQ(broker().program().AwaitExit(), 0);
  EXPECT_THAT(broker().Log(), HasSubstr(" cannot_start "));
  EXPECT_EQ(Serving(), 0);
  EXPECT_EQ(Upgrade({}).exit_code, 3) << "there is nothing to upgrade";
  StartBroker(Options());  // with the file that it had
  ExpectHeld();
}

// As with `flock LOCK gmb upgrade`.
TEST_F(UpgradeTest, TheNewOneHasNoneOfTheFilesThatTheCommandWasStartedWith) {
  const auto lock = [file = Directory() + "/lock"] {
    base::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT, 0600));
    return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd)
                                                     : base::UniqueFd();
  };
  {
    const base::UniqueFd inherited = lock();
    ASSERT_TRUE(inherited.valid());
    const Said said = Upgrade({"--wait", "2m"});
    ASSERT_EQ(said.exit_code, 0) << said.err;
  }
  EXPECT_EQ(broker().program().AwaitExit(), 0);
  EXPECT_NE(Serving(), 0);
  EXPECT_TRUE(lock().valid()) << "the broker has it";
}

// The command is gone before the new program serves, which goes on or not.
TEST_F(UpgradeTest, OneThatIsKilledHalfwayLosesNothing) {
  Hold();
  const std::string begun = Directory() + "/begun";
  const std::string go = Directory() + "/go";
  const std::string program =
      Script("echo $$ > " + begun + ".new; mv " + begun + ".new " + begun +
             "; until [ -e " + go + " ]; do sleep 0.02; done; exec " +
             GMBD_PROGRAM + " \"$@\"");
  // The new program's pid, once it has begun.
  const auto kill_halfway = [&] {
    const auto upgrade =
        StartGmb("upgrade", {"upgrade", "--wait", "5m", "--binary", program});
    EXPECT_TRUE(Await([&] { return std::ifstream(begun).good(); }));
    upgrade->Signal(SIGKILL);
    EXPECT_EQ(upgrade->AwaitExit(), 128 + SIGKILL);
    pid_t pid = 0;
    std::ifstream(begun) >> pid;
    std::remove(begun.c_str());
    return pid;
  };
  const pid_t ends = kill_halfway();
  ASSERT_GT(ends, 0);
  EXPECT_EQ(broker().program().AwaitExit(), 0);
  ::kill(ends, SIGKILL);
  EXPECT_EQ(Serving(), 0);
  EXPECT_GT(KeeperStatus().entries, 0U);
  StartBroker(Options());
  ExpectHeld();
  // And once more, with one that goes on: it is nobody's child.
  const pid_t serves = kill_halfway();
  ASSERT_GT(serves, 0);
  std::ofstream(go).close();
  EXPECT_TRUE(Await([&] { return Serving() == serves; }));
  ExpectHeld();
}

}  // namespace
}  // namespace gmb::component
