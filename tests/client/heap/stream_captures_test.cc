#include "client/heap/stream_captures.h"

#include <gtest/gtest.h>

namespace gmb::internal {
namespace {

TEST(StreamCapturesTest, AStreamHasOneCaptureAtATime) {
  StreamCaptures captures;
  int first = 0;
  int second = 0;
  EXPECT_FALSE(captures.Any());
  EXPECT_TRUE(captures.Begin(1, &first));
  EXPECT_FALSE(captures.Begin(2, &first));
  EXPECT_FALSE(captures.End(2, &first));
  EXPECT_TRUE(captures.Begin(1, &second));
  EXPECT_NE(captures.Of(&first).number, captures.Of(&second).number);
  EXPECT_TRUE(captures.End(1, &first));
  EXPECT_TRUE(captures.In(1));
  EXPECT_EQ(captures.Of(&first).pool, kGeneral);
  captures.EndAllIn(1);
  EXPECT_FALSE(captures.Any());
}

}  // namespace
}  // namespace gmb::internal
