#include "client/cli/demo/frame.h"

#include "client/cli/demo/check_list.h"
#include "client/cli/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

Picture PictureOfOneTenant() {
  Picture picture;
  picture.has_snapshot = true;
  v1::PoolStatus* const pool = picture.snapshot.status.add_pools();
  pool->mutable_device()->set_name("host memory");
  pool->set_capacity_bytes(100 * kMiB);
  pool->set_granted_bytes(50 * kMiB);
  pool->set_float_bytes(50 * kMiB);
  v1::Tenant* const tenant = picture.snapshot.tenants.add_tenants();
  tenant->set_name("chat");
  v1::QuotaView* const view = tenant->add_pools()->mutable_view();
  view->set_pool_bytes(100 * kMiB);
  view->set_guarantee_bytes(25 * kMiB);
  view->set_limit_bytes(75 * kMiB);
  view->set_leased_bytes(50 * kMiB);
  picture.act = "Act 1";
  return picture;
}

TEST(FrameTest, ATenantsBarShowsGuaranteeBorrowedBytesAndLimit) {
  Terminal terminal;
  terminal.columns = 66;  // leaves 20 for the bar
  EXPECT_THAT(DrawFrame(PictureOfOneTenant(), terminal),
              Contains(StartsWith("chat    #####|++++.....]       50.00 MiB")));
}

TEST(FrameTest, WhatIsOffTheDeviceIsShownApart) {
  Picture picture = PictureOfOneTenant();
  v1::TenantPool* const pool =
      picture.snapshot.tenants.mutable_tenants(0)->mutable_pools(0);
  pool->set_evicted_bytes(15 * kMiB);
  pool->mutable_view()->set_evicted_bytes(15 * kMiB);
  Terminal terminal;
  terminal.columns = 66;  // leaves 20 for the bar
  EXPECT_THAT(DrawFrame(picture, terminal),
              Contains(StartsWith("chat    #####|+---.....]       50.00 MiB "
                                  "15.00 MiB evicted")));
}

TEST(FrameTest, NoLineIsWiderThanTheTerminalAndNoFrameHigher) {
  Picture picture = PictureOfOneTenant();
  for (int i = 0; i < 50; ++i)
    picture.lines.emplace_back(Tone::kGood, std::string(300, 'x'));
  for (const bool unicode : {false, true}) {
    for (int columns = 1; columns < 120; ++columns) {
      Terminal terminal;
      terminal.columns = columns;
      terminal.rows = 20;
      terminal.unicode = unicode;
      const std::vector<std::string> frame = DrawFrame(picture, terminal);
      EXPECT_LT(frame.size(), 20U);
      for (const std::string& line : frame) {
        EXPECT_LE(DisplayWidth(line), static_cast<size_t>(columns));
      }
    }
  }
}

TEST(FrameTest, WhereTheStoryDoesNotFitItsEndIsShown) {
  Picture picture = PictureOfOneTenant();
  for (int i = 0; i < 50; ++i)
    picture.lines.emplace_back(Tone::kPlain, "line " + std::to_string(i));
  Terminal terminal;
  terminal.rows = 12;
  const std::vector<std::string> frame = DrawFrame(picture, terminal);
  EXPECT_EQ(frame.back(), "  line 49");
}

TEST(FrameTest, ATenantThatWaitsSaysForWhat) {
  Picture picture = PictureOfOneTenant();
  v1::TenantPool* const pool =
      picture.snapshot.tenants.mutable_tenants(0)->mutable_pools(0);
  pool->set_waiting(1);
  pool->set_waiting_bytes(10 * kMiB);
  EXPECT_THAT(DrawFrame(picture, Terminal()),
              Contains(HasSubstr("waits for 10.00 MiB")));
}

TEST(FrameTest, BeforeTheFirstSnapshotThereIsTheActAlone) {
  Picture picture;
  picture.act = "A broker starts";
  EXPECT_EQ(DrawFrame(picture, Terminal()),
            std::vector<std::string>{"A broker starts"});
}

TEST(SnapshotTest, PartsThatDoNotAddUpAreUnsound) {
  Snapshot snapshot = PictureOfOneTenant().snapshot;
  EXPECT_EQ(WhatIsUnsound(snapshot), "");
  snapshot.status.mutable_pools(0)->set_float_bytes(49 * kMiB);
  EXPECT_THAT(WhatIsUnsound(snapshot), HasSubstr("capacity"));
}

TEST(SnapshotTest, ATenantAboveItsLimitIsUnsoundUnlessItIsSaid) {
  Snapshot snapshot = PictureOfOneTenant().snapshot;
  v1::QuotaView* const view =
      snapshot.tenants.mutable_tenants(0)->mutable_pools(0)->mutable_view();
  view->set_limit_bytes(40 * kMiB);
  EXPECT_THAT(WhatIsUnsound(snapshot), HasSubstr("chat holds 50.00 MiB"));
  view->set_over_limit_bytes(10 * kMiB);
  EXPECT_EQ(WhatIsUnsound(snapshot), "");
}

TEST(CheckListTest, NothingCheckedIsNotPassed) {
  CheckList checks;
  EXPECT_FALSE(checks.passed());
  checks.Record(true, "claim", "fact");
  EXPECT_TRUE(checks.passed());
  checks.Record(false, "claim", "fact");
  EXPECT_FALSE(checks.passed());
}

}  // namespace
}  // namespace gmb::cli
