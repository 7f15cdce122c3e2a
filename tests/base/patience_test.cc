#include "base/patience.h"

#include <gtest/gtest.h>

#include "absl/status/statusor.h"

namespace gmb::base {
namespace {

TEST(PatienceTest, WhatIsRefusedForAMomentIsTriedAgain) {
  Patience patience(absl::Seconds(1));
  int asked = 0;
  const absl::StatusOr<int> answer = patience.Do([&]() -> absl::StatusOr<int> {
    if (++asked < 4) return absl::ResourceExhaustedError("no file is free");
    return asked;
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, 4);
}

TEST(PatienceTest, WhatIsWrongIsAskedForOnce) {
  Patience patience(absl::Seconds(1));
  int asked = 0;
  EXPECT_EQ(patience
                .Do([&] {
                  ++asked;
                  return absl::InvalidArgumentError("it is something else");
                })
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(asked, 1);
}

// Of many that are refused for good, all together cost so much.
TEST(PatienceTest, ItEnds) {
  Patience patience(absl::Milliseconds(20));
  int asked = 0;
  const auto never = [&] {
    ++asked;
    return absl::UnavailableError("");
  };
  EXPECT_FALSE(patience.Do(never).ok());
  EXPECT_EQ(asked, 6) << "after 0, 1, 3, 7, 15 and 20 ms";
  EXPECT_FALSE(patience.Do(never).ok());
  EXPECT_EQ(asked, 7);
}

}  // namespace
}  // namespace gmb::base
