// A file that would take memory from processes, read by a real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/component/reload_fixture.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class ReloadPendingTest : public ReloadTest {};

TEST_F(ReloadPendingTest, ALimitBelowWhatIsHeldWaitsUntilItTakesNothing) {
  Write("tenants:\n- {name: a, limit: 75%, weight: 1}\n");
  Start();
  const auto client = Connect("a");
  auto lease = client->Acquire(128 * kMiB);
  ASSERT_TRUE(lease.ok());
  const std::string log = Reload(
      "tenants:\n- {name: a, limit: 25%, weight: 2}\n", "reload_pending");
  EXPECT_THAT(
      log, AllOf(HasSubstr("weight 1 -> 2"), Not(HasSubstr("limit 75% -> 25%")),
                 HasSubstr("bytes=67108864")));
  EXPECT_THAT(Tenant("a"), HasSubstr("75% ="));
  EXPECT_THAT(Doctor(), HasSubstr("reload_may_reclaim"));
  // At the next one, too.
  Reload("reload_pending");
  ASSERT_TRUE(std::move(*lease).Release().ok());
  EXPECT_THAT(LogUntil("reloaded"), HasSubstr("limit 75% -> 25%"));
  EXPECT_THAT(Tenant("a"), HasSubstr("25% ="));
  EXPECT_THAT(Doctor(), Not(HasSubstr("reload_may_reclaim")));
}

TEST_F(ReloadPendingTest, WithinReloadMayReclaimItIsTaken) {
  Write("tenants:\n- {name: a, limit: 75%}\n- {name: b, limit: 75%}\n");
  Start();
  const auto a = Connect("a");
  const auto b = Connect("b");
  const auto of_a = a->Acquire(96 * kMiB);
  const auto of_b = b->Acquire(128 * kMiB);
  ASSERT_TRUE(of_a.ok() && of_b.ok());
  // 32 MiB of a and 64 MiB of b.
  const std::string log = Reload(
      "reload_may_reclaim: 70MiB\n"
      "tenants:\n- {name: a, limit: 25%}\n- {name: b, limit: 25%}\n",
      "reload_pending");
  EXPECT_THAT(log, AllOf(HasSubstr("a: limit 75% -> 25%"),
                         HasSubstr("reload_pending tenant=b")));
  EXPECT_THAT(Tenant("a"), HasSubstr("25% ="));
  EXPECT_THAT(Tenant("b"), HasSubstr("75% ="));
  EXPECT_FALSE(a->Acquire(2 * kMiB).ok());
  EXPECT_THAT(Reload("reload_may_reclaim: 64MiB\n"
                     "tenants:\n- {name: a, limit: 25%}\n"
                     "- {name: b, limit: 25%}\n",
                     "reloaded"),
              HasSubstr("b: limit 75% -> 25%"));
}

TEST_F(ReloadPendingTest, AnOperatorWhoWritesLaterThanThePendingFileWins) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  auto client = Connect("a");
  auto lease = client->Acquire(128 * kMiB);
  ASSERT_TRUE(lease.ok());
  const std::string file = "tenants:\n- {name: a, limit: 25%}\n";
  Reload(file, "reload_pending");
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "60%"}).exit_code, 0);
  ASSERT_TRUE(std::move(*lease).Release().ok());
  Reload();
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
  client = nullptr;
  Start();
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
}

TEST_F(ReloadPendingTest, TheEndOfWhatWasSetForATimeTakesNoMore) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  const auto client = Connect("a");
  auto lease = client->Acquire(128 * kMiB);
  ASSERT_TRUE(lease.ok());
  const auto set_for_a_time = [this] {
    return Gmb({"tenant", "set", "a", "--limit", "90%", "--for", "1h"});
  };
  ASSERT_EQ(set_for_a_time().exit_code, 0);
  // Before the file is read, and while its limit waits.
  Reload("tenants:\n- {name: a, limit: 25%}\n", "reload_pending");
  EXPECT_THAT(Tenant("a"), HasSubstr("90% ="));
  ASSERT_EQ(Gmb({"tenant", "reset", "a"}).exit_code, 0);
  Reload("reload_pending");
  EXPECT_THAT(Tenant("a"), HasSubstr("75% ="));
  ASSERT_EQ(set_for_a_time().exit_code, 0);
  Reload();
  EXPECT_THAT(Tenant("a"), HasSubstr("90% ="));
  EXPECT_THAT(Doctor(), HasSubstr("waits for the end"));
  ASSERT_EQ(Gmb({"tenant", "reset", "a"}).exit_code, 0);
  LogUntil("reload_pending");
  EXPECT_THAT(Tenant("a"), HasSubstr("75% ="));
  ASSERT_TRUE(std::move(*lease).Release().ok());
  EXPECT_THAT(LogUntil("reloaded"), HasSubstr("limit 75% -> 25%"));
}

TEST_F(ReloadPendingTest, ATenantOutOfTheFileDrainsAndIsDeleted) {
  Write("tenants:\n- {name: a, guarantee: 60%}\n- {name: b}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "mine", "--limit", "50%"}).exit_code, 0);
  auto client = Connect("a");
  EXPECT_THAT(
      Reload("tenants:\n- {name: b, guarantee: 60%}\n", "tenant_leaving"),
      HasSubstr("tenant a leaves"));
  EXPECT_THAT(Tenant("b"), HasSubstr("60% ="));
  EXPECT_EQ(Gmb({"tenant", "get", "a"}).exit_code, 0);
  EXPECT_FALSE(client->Acquire(2 * kMiB).ok());
  client = nullptr;
  LogUntil("tenant_deleted");
  // The sockets are gone before that is said.
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/tenants/a"));
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).exit_code, Not(0));
  EXPECT_EQ(Gmb({"tenant", "get", "mine"}).exit_code, 0);
  EXPECT_THAT(Gmb({"audit"}).output, HasSubstr("delete_tenant"));
}

TEST_F(ReloadPendingTest,
       ATenantOutOfTheFileThatHoldsMemoryStaysUntilItHoldsNone) {
  Write("tenants:\n- {name: a, guarantee: 60%}\n");
  Start();
  const auto client = Connect("a");
  auto lease = client->Acquire(64 * kMiB);
  ASSERT_TRUE(lease.ok());
  EXPECT_THAT(Reload("tenants: []\n", "reload_pending"),
              HasSubstr("tenant a, which the file does not name any more"));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok()) << "it is served as before";
  EXPECT_THAT(
      Reload("tenants:\n- {name: b, guarantee: 60%}\n", "reload_failed"),
      HasSubstr("would exceed"));
  ASSERT_TRUE(std::move(*lease).Release().ok());
  LogUntil("tenant_leaving");
}

TEST_F(ReloadPendingTest, AUidOfATenantThatStaysIsNobodyElsesUntilItGoes) {
  Write("tenants:\n- {name: x, uids: [1000]}\n");
  Start();
  const auto client = Connect("x");
  auto lease = client->Acquire(64 * kMiB);
  ASSERT_TRUE(lease.ok());
  Reload("tenants:\n- {name: y, uids: [1000, 1001]}\n", "reload_pending");
  EXPECT_THAT(KnownBy("x"), HasSubstr("uid 1000"));
  EXPECT_THAT(KnownBy("y"), HasSubstr("uid 1001"));
  for (const std::string tenant : {"y", "z"}) {
    const CommandResult set = Gmb({"tenant", "set", tenant, "--uid", "1000"});
    EXPECT_EQ(set.exit_code, 1);
    EXPECT_THAT(set.output, HasSubstr("uid=1000"));
  }
  Run({"tenant", "set", "y", "--weight", "2"});
  EXPECT_THAT(KnownBy("y"), HasSubstr("uid 1001"));
  Reload("reload_pending");
  ASSERT_TRUE(std::move(*lease).Release().ok());
  LogUntil("tenant_leaving");
  EXPECT_THAT(KnownBy("x"), Not(HasSubstr("uid")));
  EXPECT_THAT(KnownBy("y"), HasSubstr("uid 1000, 1001"));
}

TEST_F(ReloadPendingTest, ATokenThatATenantKeepsIsNotSaidToBeAnothers) {
  std::ofstream(directory_ / "token") << "the secret of x and y";
  Write("tenants:\n- {name: x, token_file: token}\n");
  Start();
  const auto client = Connect("x");
  auto lease = client->Acquire(64 * kMiB);
  ASSERT_TRUE(lease.ok());
  EXPECT_THAT(
      Reload("tenants:\n- {name: y, token_file: token}\n", "reload_pending"),
      Not(HasSubstr("another token")));
  EXPECT_THAT(Reload("reload_pending"), Not(HasSubstr("another token")));
  ASSERT_TRUE(std::move(*lease).Release().ok());
  EXPECT_THAT(LogUntil("tenant_leaving"), HasSubstr("y: another token"));
  EXPECT_THAT(KnownBy("y"), HasSubstr("token"));
}

// It may not be killed, and its process does not end when it is asked to.
TEST_F(ReloadPendingTest,
       ATenantThatOverstaysIsTriedAgainAndGoesWithItsLastProcess) {
  Write("drain_deadline: 100ms\ntenants:\n- {name: a}\n");
  Start();
  auto client = Connect("a");
  const std::string without = "drain_deadline: 100ms\ntenants: []\n";
  EXPECT_THAT(Reload(without, "reload_pending"),
              AllOf(HasSubstr("tenant_stays"),
                    HasSubstr("stays until its processes end"),
                    Not(HasSubstr("uids and token"))));
  EXPECT_THAT(Doctor(), Not(HasSubstr("uids and token")));
  EXPECT_THAT(Reload("reload_pending"),
              AllOf(HasSubstr("tenant a leaves"), HasSubstr("tenant_stays")));
  client = nullptr;
  LogUntil("tenant_deleted");
  EXPECT_NE(Gmb({"tenant", "get", "a"}).exit_code, 0);
}

TEST_F(ReloadPendingTest, WhatWasSetForATimeEndsWithoutAGuaranteeForWhoLeaves) {
  Write("tenants:\n- {name: a, guarantee: 60%}\n- {name: b}\n");
  Start();
  const auto client = Connect("a");
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--guarantee", "50%", "--for", "2s"})
                .exit_code,
            0);
  Reload("tenants:\n- {name: b, guarantee: 60%}\n", "tenant_leaving");
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (Gmb({"audit"}).output.find("override_ended") == std::string::npos)
    ASSERT_LT(absl::Now(), end);
  ASSERT_EQ(Gmb({"tenant", "set", "b", "--weight", "2"}).exit_code, 0);
  EXPECT_THAT(LogUntil("tenant_changed"), Not(HasSubstr("does_not_fit")));
}

TEST_F(ReloadPendingTest, AnOperatorsDeletionGoesOnWhateverTheFileNames) {
  const std::string file = "tenants:\n- {name: a}\n";
  Write(file);
  Start();
  auto client = Connect("a");
  int exit_code = -1;
  std::thread operators([&] {
    exit_code = Gmb({"tenant", "delete", "a", "--wait", "1h"}).exit_code;
  });
  LogUntil("tenant_leaving");
  Reload("tenants: []\n", "reloaded");
  Reload(file, "reloaded");
  client = nullptr;
  LogUntil("tenant_deleted");
  // The call would wait for ever.
  if (HasFailure()) gmbd_ = nullptr;
  operators.join();
  EXPECT_EQ(exit_code, 0);
}

TEST_F(ReloadPendingTest, ATenantThatIsPutBackIntoTheFileStays) {
  const std::string file = "tenants:\n- {name: a, guarantee: 60%}\n";
  Write(file);
  Start();
  auto client = Connect("a");
  Reload("tenants: []\n", "tenant_leaving");
  Reload(file, "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
  EXPECT_TRUE(Connect("a")->Acquire(2 * kMiB).ok());
  client = nullptr;
  EXPECT_TRUE(Connect("a")->Acquire(2 * kMiB).ok());
}

}  // namespace
}  // namespace gmb
