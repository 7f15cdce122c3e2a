#ifndef GMB_TESTS_COMPONENT_RESTART_FIXTURE_H_
#define GMB_TESTS_COMPONENT_RESTART_FIXTURE_H_

#include <signal.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"
#include "tests/component/component_test.h"

namespace gmb::component {

// A real gmbd with a real gmb-keeper, which outlives it.
class RestartFixture : public ComponentTest {
 protected:
  void SetUp() override { StartKeeper(); }
  void TearDown() override {
    ComponentTest::TearDown();
    if (keeper_ == nullptr) return;
    EXPECT_EQ(keeper_->SanitizerReport(), "");
  }

  void StartKeeper() {
    keeper_ = std::make_unique<Program>(
        Directory(), absl::StrCat("keeper-", ++keepers_),
        std::vector<std::string>{GMB_KEEPER_PROGRAM, "--socket",
                                 KeeperSocket()});
    ASSERT_TRUE(keeper_->AwaitErr("listens")) << keeper_->Err();
  }
  // By another one, which has all of it.
  void ReplaceKeeper() {
    std::unique_ptr<Program> old = std::move(keeper_);
    keeper_ = std::make_unique<Program>(
        Directory(), absl::StrCat("keeper-", ++keepers_),
        std::vector<std::string>{GMB_KEEPER_PROGRAM, "--socket", KeeperSocket(),
                                 "--replace"});
    ASSERT_TRUE(keeper_->AwaitErr("listens")) << keeper_->Err();
    EXPECT_EQ(old->AwaitExit(), 0) << old->Err();
    EXPECT_EQ(old->SanitizerReport(), "");
  }
  void KillKeeper() {
    keeper_->Signal(SIGKILL);
    ASSERT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  }
  [[nodiscard]] std::string KeeperSocket() const {
    return Directory() + "/keeper/keeper.sock";
  }

  [[nodiscard]] virtual BrokerOptions Options() const {
    BrokerOptions options;
    options.devices = {"host:96MiB"};
    options.drain_deadline = "500ms";
    options.flags = {"--keeper", KeeperSocket(), "--host-pool=64MiB"};
    return options;
  }
  void Restart() {
    KillBroker();
    StartBroker(Options());
  }

  [[nodiscard]] keeper::KeeperStatus KeeperStatus() const {
    auto link =
        keeper::KeeperLink::Connect({.socket = KeeperSocket(),
                                     .role = keeper::Role::kCommand,
                                     .timeout = absl::FromChrono(kPatience)});
    EXPECT_TRUE(link.ok()) << link.status();
    if (!link.ok()) return {};
    const auto answer =
        link->Ask(keeper::Kind::kStatus, "", {}, keeper::Kind::kStatusIs);
    EXPECT_TRUE(answer.ok()) << answer.status();
    const auto status = keeper::DecodeStatus(answer.ok() ? answer->body : "");
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : keeper::KeeperStatus();
  }
  // Another one's is another, unless it has taken the first one's place.
  [[nodiscard]] std::string KeeperId() const {
    const auto link =
        keeper::KeeperLink::Connect({.socket = KeeperSocket(),
                                     .role = keeper::Role::kCommand,
                                     .timeout = absl::FromChrono(kPatience)});
    EXPECT_TRUE(link.ok()) << link.status();
    return link.ok() ? link->welcome().keeper_id : "";
  }
  // An orderly stop leaves nothing behind.
  void ExpectNothingIsLeft() {
    StopBroker();
    EXPECT_EQ(KeeperStatus().entries, 0U);
  }

  // A pattern that tells each word of each lease from all others.
  static void Fill(const Lease& lease, uint64_t seed) {
    auto* const words = static_cast<uint64_t*>(lease.data());
    for (uint64_t i = 0; i < lease.size_bytes() / 8; ++i)
      words[i] = (seed + i) * 0x9E3779B97F4A7C15U;
  }
  [[nodiscard]] static bool Holds(const Lease& lease, uint64_t seed) {
    const auto* const words = static_cast<const uint64_t*>(lease.data());
    for (uint64_t i = 0; i < lease.size_bytes() / 8; ++i) {
      if (words[i] != (seed + i) * 0x9E3779B97F4A7C15U) return false;
    }
    return true;
  }

  std::unique_ptr<Client> Parked(const std::string& tenant) {
    auto client = ConnectAs(tenant);
    GateOptions gate;
    gate.park_after = absl::ZeroDuration();
    const absl::Status on = client->TurnGateOn(gate);
    EXPECT_TRUE(on.ok()) << on;
    return client;
  }
  void Evict(const std::string& tenant, uint64_t bytes) {
    v1::ReclaimRequest request;
    request.set_tenant(tenant);
    request.set_bytes(bytes);
    request.mutable_wait()->set_seconds(30);
    const auto done = admin().Reclaim(request, absl::Seconds(60));
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_TRUE(
        Await([&] { return Status().host_pool().held_bytes() >= bytes; }));
  }
  // The inode of the file that is mapped there: that of a slab.
  [[nodiscard]] static std::string InodeAt(const void* address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const std::vector<std::string> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      const std::pair<std::string, std::string> range =
          absl::StrSplit(words[0], absl::MaxSplits('-', 1));
      const auto at = reinterpret_cast<uintptr_t>(address);
      if (at >= std::stoull(range.first, nullptr, 16) &&
          at < std::stoull(range.second, nullptr, 16))
        return words.at(4);
    }
    return "";
  }

  // Lines of the broker's log with this event of a tenant.
  [[nodiscard]] std::vector<std::string> LinesOf(const std::string& event) {
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(broker().Log(), '\n')) {
      if (absl::StrContains(line, absl::StrCat(" ", event, " tenant=")))
        lines.emplace_back(line);
    }
    return lines;
  }

  std::unique_ptr<Program> keeper_;

 private:
  int keepers_ = 0;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_RESTART_FIXTURE_H_
