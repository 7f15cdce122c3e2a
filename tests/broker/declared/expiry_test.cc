#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNoon = absl::FromUnixSeconds(1'795'184'546);
const absl::Time kOne = kNoon + absl::Hours(1);
const Source kBob{Source::Writer::kOperator, "bob"};

class Expiry : public testing::Test {
 protected:
  Expiry() { Apply({{"limit", "75%"}, {"weight", "2"}}); }

  void Apply(const Fields& file) {
    declared_ =
        MergeFile(declared_, {.tenants = {{"a", file}}, .pools = {}}, kNoon)
            .next;
  }
  void SetForGood(const std::string& limit,
                  const std::set<std::string>& named = {"limit"}) {
    Fields fields = InForce(declared_.tenants.at("a"));
    fields["limit"] = limit;
    WriteFields("a", fields, kBob, kNoon, &declared_, named);
  }
  void SetUntil(const std::string& limit, absl::Time until) {
    WriteUntil("a", {{"limit", limit}}, kBob, kNoon, until, &declared_);
  }
  std::string Limit() const {
    return InForce(declared_.tenants.at("a"), "limit")->value;
  }

  Declared declared_;
};

TEST_F(Expiry, AValueForATimeHoldsUntilThenAndTheFilesAfterIt) {
  SetUntil("50%", kOne);
  EXPECT_EQ(Limit(), "50%");
  EXPECT_EQ(NextExpiry(declared_), kOne);
  EXPECT_THAT(Expire(kOne - absl::Nanoseconds(1), &declared_), IsEmpty());
  EXPECT_EQ(Limit(), "50%");
  EXPECT_THAT(Expire(kOne, &declared_), ElementsAre("a"));
  EXPECT_EQ(Limit(), "75%");
  EXPECT_EQ(NextExpiry(declared_), std::nullopt);
}

TEST_F(Expiry, WhatAnOperatorSetForGoodBeforeHoldsAgain) {
  SetForGood("60%");
  SetUntil("50%", kOne);
  EXPECT_EQ(Limit(), "50%");
  (void)Expire(kOne, &declared_);
  EXPECT_EQ(Limit(), "60%");
}

TEST_F(Expiry, WhatIsSetForGoodLaterEndsIt) {
  SetUntil("50%", kOne);
  SetForGood("60%");
  EXPECT_EQ(NextExpiry(declared_), std::nullopt);
  EXPECT_THAT(Expire(kOne, &declared_), IsEmpty());
  EXPECT_EQ(Limit(), "60%");
}

TEST_F(Expiry, TheSameValueIsForGoodWhereItIsNamedAlone) {
  SetUntil("50%", kOne);
  SetForGood("50%", {"weight"});
  EXPECT_EQ(NextExpiry(declared_), kOne);
  SetForGood("50%", {"limit"});
  EXPECT_EQ(NextExpiry(declared_), std::nullopt);
  EXPECT_EQ(Limit(), "50%");
}

TEST_F(Expiry, AnEditOfTheFileEndsIt) {
  SetUntil("50%", kOne);
  Apply({{"limit", "70%"}, {"weight", "2"}});
  EXPECT_EQ(Limit(), "70%");
  EXPECT_EQ(NextExpiry(declared_), std::nullopt);
}

TEST_F(Expiry, WhatHoldsForGoodAlreadyIsNotWrittenForATime) {
  const Declared before = declared_;
  SetUntil("75%", kOne);
  EXPECT_EQ(declared_, before);
}

TEST_F(Expiry, ResetGivesTheNamedFieldsBackToTheFile) {
  Fields fields = InForce(declared_.tenants.at("a"));
  fields["limit"] = "60%";
  fields["weight"] = "3";
  WriteFields("a", fields, kBob, kNoon, &declared_);
  SetUntil("50%", kOne);
  Reset("a", {"limit"}, &declared_);
  EXPECT_EQ(Limit(), "75%");
  EXPECT_EQ(InForce(declared_.tenants.at("a"), "weight")->value, "3");
  EXPECT_EQ(InForce(declared_.tenants.at("a"), "limit")->source, Source());
}

TEST_F(Expiry, AResetOfWhatIsTheFilesChangesNothing) {
  const Declared before = declared_;
  Reset("a", {"limit", "weight", "no such field"}, &declared_);
  Reset("no such tenant", {"limit"}, &declared_);
  EXPECT_EQ(declared_, before);
}

}  // namespace
}  // namespace gmb::broker
