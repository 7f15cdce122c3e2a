#include "client/cli/views/status_view.h"

#include <sstream>

#include "absl/time/clock.h"
#include "client/cli/text/text.h"
#include "client/cli/views/host_pool_view.h"
#include "client/cli/views/pool_bar.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

v1::GetStatusResponse BusyBroker() {
  v1::GetStatusResponse status;
  status.set_broker_version("0.1.0");
  status.set_handles(41);
  status.set_max_handles(32768);
  v1::PoolStatus* const pool = status.add_pools();
  pool->mutable_device()->set_uuid("host-0");
  pool->mutable_device()->set_name("host memory");
  pool->mutable_device()->set_kind(v1::DEVICE_KIND_HOST);
  pool->mutable_device()->set_total_bytes(1024 * kMiB);
  pool->set_target_bytes(1000 * kMiB);
  pool->set_capacity_bytes(1000 * kMiB);
  pool->set_granted_bytes(500 * kMiB);
  pool->set_returned_bytes(100 * kMiB);
  pool->set_ready_bytes(200 * kMiB);
  pool->set_float_bytes(100 * kMiB);
  pool->set_scrubbing_bytes(50 * kMiB);
  pool->set_unreturned_bytes(30 * kMiB);
  pool->set_missing_bytes(20 * kMiB);
  return status;
}

std::string Print(const v1::GetStatusResponse& status) {
  std::ostringstream out;
  PrintStatus(status, "/run/gmb", absl::Now(), Terminal(), out);
  return out.str();
}

TEST(StatusViewTest, EveryPartOfThePoolEquationIsShown) {
  const std::string text = Print(BusyBroker());
  for (const char* const part :
       {"granted", "+ returned", "+ ready", "+ float", "+ scrubbing",
        "+ unreturned", "+ missing", "= capacity", "500.00 MiB", "100.00 MiB",
        "200.00 MiB", "50.00 MiB", "30.00 MiB", "20.00 MiB", "1000.00 MiB"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr("41 of 32768 handles"));
}

TEST(StatusViewTest, AHealthyPoolHasNoWarnings) {
  v1::PoolStatus pool;
  pool.set_capacity_bytes(kMiB);
  pool.set_target_bytes(kMiB);
  EXPECT_THAT(Warnings(pool), IsEmpty());
}

TEST(StatusViewTest, WhatNeedsAttentionIsAWarning) {
  v1::PoolStatus pool = BusyBroker().pools(0);
  pool.set_problem("the device is lost");
  pool.set_target_bytes(900 * kMiB);
  pool.set_headroom_bytes(kMiB);
  EXPECT_THAT(
      Warnings(pool),
      ElementsAre("the device is lost", HasSubstr("holds 100.00 MiB more than"),
                  HasSubstr("30.00 MiB were given back"),
                  HasSubstr("20.00 MiB of the pool"),
                  HasSubstr("headroom is used up")));
}

TEST(StatusViewTest, ABrokerThatStopsSaysSo) {
  v1::GetStatusResponse status = BusyBroker();
  EXPECT_THAT(Print(status), Not(HasSubstr("draining")));
  status.set_draining(true);
  EXPECT_THAT(Print(status), HasSubstr("draining"));
}

TEST(StatusViewTest, AKeeperThatIsLostIsAWarning) {
  v1::GetStatusResponse status = BusyBroker();
  EXPECT_THAT(Print(status), Not(HasSubstr("keeper")));
  status.set_keeper_problem("it is dead");
  EXPECT_THAT(Print(status),
              HasSubstr("warning: the keeper is lost: it is dead\n"));
}

TEST(StatusViewTest, WithoutAHostPoolItSaysWhatThatMeans) {
  EXPECT_THAT(Print(BusyBroker()),
              HasSubstr("host pool  none: leases whose contents are to be kept "
                        "stay on the device\n"));
}

v1::HostPoolStatus HalfPreparedHostPool() {
  v1::HostPoolStatus pool;
  pool.set_bytes(1000 * kMiB);
  pool.set_prepared_bytes(500 * kMiB);
  pool.set_locked_bytes(250 * kMiB);
  pool.set_reserved_bytes(400 * kMiB);
  pool.set_placed_bytes(300 * kMiB);
  pool.set_held_bytes(200 * kMiB);
  pool.set_pages("2 MiB hugetlb");
  return pool;
}

TEST(StatusViewTest, AHostPoolShowsHowFarItIsPreparedAndWhoHasIt) {
  v1::GetStatusResponse status = BusyBroker();
  *status.mutable_host_pool() = HalfPreparedHostPool();
  EXPECT_THAT(Print(status),
              HasSubstr("host pool  1000.00 MiB (2 MiB hugetlb), 50.0% "
                        "prepared, 25.0% page-locked, being prepared\n"
                        "           reserved 400.00 MiB (40.0%), placed "
                        "300.00 MiB, held 200.00 MiB\n"));
  status.mutable_host_pool()->set_on_demand(true);
  EXPECT_THAT(Print(status),
              HasSubstr("(2 MiB hugetlb) by default, taken as it is needed, "));
  status.mutable_host_pool()->set_done(true);
  EXPECT_THAT(Print(status), Not(HasSubstr("being prepared")));
  EXPECT_THAT(Print(status), Not(HasSubstr("warning: host pool")));
}

TEST(StatusViewTest, WhatIsWrongWithTheHostPoolIsAWarning) {
  v1::GetStatusResponse status = BusyBroker();
  *status.mutable_host_pool() = HalfPreparedHostPool();
  EXPECT_THAT(Warnings(status.host_pool()), IsEmpty());
  status.mutable_host_pool()->set_problem("page-locking\nfailed");
  status.mutable_host_pool()->set_failed_bytes(100 * kMiB);
  EXPECT_THAT(Print(status),
              HasSubstr("warning: host pool: page-locking?failed\nwarning: "
                        "100.00 MiB of the host pool cannot be used"));
}

TEST(PoolBarTest, PartsAreToScaleAndFillTheBar) {
  EXPECT_EQ(PoolBar(BusyBroker().pools(0), 20, Terminal()),
            "#########%%====..~!x")
      << "a part that is not empty has at least one character";
}

TEST(PoolBarTest, AnEmptyPoolIsAnEmptyBar) {
  EXPECT_EQ(PoolBar(v1::PoolStatus(), 5, Terminal()), "     ");
}

TEST(PoolBarTest, AUnicodeBarHasTheSameWidth) {
  Terminal terminal;
  terminal.unicode = true;
  terminal.colour = false;
  EXPECT_EQ(DisplayWidth(PoolBar(BusyBroker().pools(0), 33, terminal)), 33U);
}

}  // namespace
}  // namespace gmb::cli
