#ifndef GMB_TESTS_COMPONENT_RESTART_FIXTURE_H_
#define GMB_TESTS_COMPONENT_RESTART_FIXTURE_H_

#include <signal.h>

#include <cstdint>
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
