#include "ipc/random.h"

#include <gtest/gtest.h>

#include <set>

namespace gmb::ipc {
namespace {

TEST(RandomTokenTest, HasTheLengthAskedForAndDiffersEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const absl::StatusOr<std::string> token = RandomToken(16);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->size(), 16U);
    EXPECT_TRUE(seen.insert(*token).second);
  }
}

TEST(RandomTokenTest, RefusesLengthsThatNoTokenHas) {
  EXPECT_FALSE(RandomToken(0).ok());
  EXPECT_TRUE(RandomToken(256).ok());
  EXPECT_FALSE(RandomToken(257).ok());
}

TEST(ConstantTimeEqualsTest, ComparesAllBytes) {
  EXPECT_TRUE(ConstantTimeEquals("", ""));
  EXPECT_TRUE(
      ConstantTimeEquals(std::string("a\0b", 3), std::string("a\0b", 3)));
  EXPECT_FALSE(
      ConstantTimeEquals(std::string("a\0b", 3), std::string("a\0c", 3)));
  EXPECT_FALSE(ConstantTimeEquals("b", "a"));
  EXPECT_FALSE(ConstantTimeEquals("a", "aa"));
  EXPECT_FALSE(ConstantTimeEquals("\x80", std::string("\0", 1)));
}

}  // namespace
}  // namespace gmb::ipc
