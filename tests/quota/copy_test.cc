// A copy of an engine goes its own way.
#include <gtest/gtest.h>

#include "tests/quota/engine_fixture.h"

namespace gmb::quota {
namespace {

using ::testing::ElementsAre;

using CopyTest = EngineTest;

TEST_F(CopyTest, ACopyLeavesTheEngineAsItWas) {
  const auto lease = Take(kA, 60);
  ASSERT_TRUE(lease);
  const RequestId waits = Wait(kB, 80);
  Engine copy(engine_);

  (void)copy.Handle(Released{*lease}, now_);
  (void)copy.Handle(TenantRemove{kC}, now_);
  EXPECT_EQ(copy.Pool(kPool)->leased_bytes, 80u);
  EXPECT_FALSE(copy.TenantPool(kC, kPool));

  EXPECT_EQ(Pool().leased_bytes, 60u);
  EXPECT_TRUE(engine_.TenantPool(kC, kPool));
  // And it still goes on.
  Release(lease);
  EXPECT_THAT(GrantedRequests(), ElementsAre(waits));
}

// A guarantee that waits for bytes is kept by its place in a list, and the
// accounts that an event has touched in another: both are of the copy alone.
TEST_F(CopyTest, AGuaranteeThatWaitsGrowsInTheCopyToo) {
  const auto lease = Take(kA, 60);
  ASSERT_TRUE(lease);
  SetQuota(kB, 70, 100);
  ASSERT_LT(View(kB).effective_guarantee_bytes, 70u);
  const uint64_t before_bytes = View(kB).effective_guarantee_bytes;
  Engine copy(engine_);
  (void)copy.Handle(Released{*lease}, now_);
  EXPECT_EQ(copy.TenantPool(kB, kPool)->effective_guarantee_bytes, 70u);
  EXPECT_EQ(View(kB).effective_guarantee_bytes, before_bytes);
  Release(lease);
  EXPECT_EQ(View(kB).effective_guarantee_bytes, 70u);
}

}  // namespace
}  // namespace gmb::quota
