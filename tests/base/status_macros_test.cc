#include "base/status_macros.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace gmb::base {
namespace {

using Names = std::map<std::string, int>;

const absl::Status kBroken = absl::DataLossError("broken");

// Counts how often it is asked.
struct Source {
  absl::Status status;
  int asked = 0;

  absl::Status Check() {
    ++asked;
    return status;
  }
  absl::StatusOr<std::unique_ptr<int>> Make(int value) {
    ++asked;
    if (!status.ok()) return status;
    return std::make_unique<int>(value);
  }
};

TEST(StatusMacros, AnErrorEndsTheFunctionAndIsPassedOn) {
  bool went_on = false;
  const auto check = [&](Source* source) -> absl::Status {
    GMB_RETURN_IF_ERROR(source->Check());
    went_on = true;
    return absl::OkStatus();
  };
  Source broken{kBroken};
  EXPECT_EQ(check(&broken), kBroken);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(broken.asked, 1);
  Source fine;
  EXPECT_EQ(check(&fine), absl::OkStatus());
  EXPECT_TRUE(went_on);
  EXPECT_EQ(fine.asked, 1);
}

TEST(StatusMacros, OneStatementWithoutBracesAndAnElse) {
  const auto check = [](bool wanted) -> absl::Status {
    if (wanted)
      GMB_RETURN_IF_ERROR(kBroken);
    else
      return absl::NotFoundError("not wanted");
    return absl::OkStatus();
  };
  EXPECT_EQ(check(true), kBroken);
  EXPECT_TRUE(absl::IsNotFound(check(false)));
}

TEST(StatusMacros, AValueIsMovedToANewOrAnOldPlace) {
  std::unique_ptr<int> old;
  const auto sum = [&](Source* source) -> absl::StatusOr<int> {
    GMB_ASSIGN_OR_RETURN(const std::unique_ptr<int> made, source->Make(3));
    GMB_ASSIGN_OR_RETURN(old, source->Make(4));
    return *made + *old;
  };
  Source fine;
  EXPECT_EQ(*sum(&fine), 7);
  EXPECT_EQ(fine.asked, 2);
  Source broken{kBroken};
  EXPECT_EQ(sum(&broken).status(), kBroken);
  EXPECT_EQ(broken.asked, 1);
  EXPECT_EQ(*old, 4);
}

TEST(StatusMacros, CommasInTheExpressionAreItsOwn) {
  const auto size = []() -> absl::StatusOr<size_t> {
    GMB_ASSIGN_OR_RETURN(const Names names,
                         (absl::StatusOr<std::map<std::string, int>>(
                             Names{{"a", 1}, {"b", 2}})));
    GMB_RETURN_IF_ERROR(names.size() == 2 ? absl::OkStatus() : kBroken);
    return names.size();
  };
  EXPECT_EQ(*size(), 2U);
}

}  // namespace
}  // namespace gmb::base
