#include "broker/declared/uids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const absl::Time kNow = absl::UnixEpoch();

void Give(const std::string& tenant, const std::string& uids,
          Declared* declared) {
  WriteFields(tenant, FieldsOf(PolicyOf(tenant, {{"uids", uids}})),
              {Source::Writer::kOperator, "ann"}, kNow, declared);
}

TEST(Uids, ASecondTenantIsRefusedAndTheOwnerIsNamed) {
  Declared before;
  Give("z", "1000,1001", &before);
  Declared next = before;
  Give("a", "1001", &next);
  const absl::Status refused = CheckUids(before, next);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("take it from tenant z first, or name another: "
                        "uid=1001 tenant=a"));
  Give("z", "1000", &next);
  EXPECT_TRUE(CheckUids(before, next).ok()) << "taken in the same change";
}

TEST(Uids, TwoThatHadItBeforeKeepIt) {
  Declared both;
  Give("a", "1000", &both);
  Give("b", "1000", &both);
  EXPECT_TRUE(CheckUids(both, both).ok());
  Declared next = both;
  Give("c", "1000", &next);
  EXPECT_FALSE(CheckUids(both, next).ok());
}

TEST(Uids, ATenantThatIsDeletedOrLeavesHasNone) {
  FileState file;
  file.tenants["z"] = FieldsOf(PolicyOf("z", {{"uids", "1000"}}));
  const Declared before = MergeFile({}, file, kNow).next;
  Declared deleted = before;
  Delete("z", &deleted);
  Give("a", "1000", &deleted);
  EXPECT_TRUE(CheckUids(before, deleted).ok());
  Declared leaving = MergeFile(before, {}, kNow).next;
  ASSERT_TRUE(leaving.tenants.contains("z"));
  Give("a", "1000", &leaving);
  EXPECT_TRUE(CheckUids(before, leaving).ok());
  // It comes back.
  EXPECT_FALSE(CheckUids(leaving, MergeFile(leaving, file, kNow).next).ok());
}

TEST(Uids, OneThatATenantLacksForATimeIsItsOwn) {
  Declared before;
  Give("z", "1000", &before);
  WriteUntil("z", {{"uids", ""}}, {Source::Writer::kOverride, "ann"}, kNow,
             kNow + absl::Hours(1), &before);
  Declared next = before;
  Give("a", "1000", &next);
  EXPECT_THAT(std::string(CheckUids(before, next).message()),
              HasSubstr("from tenant z first"));
}

TEST(Uids, WhatATenantHasNowIsItsOwnWhateverIsDeclared) {
  Declared before;
  Give("b", "1001", &before);
  const HeldUids held = {{1000, "leaving"}, {1001, "b"}};
  Declared next = before;
  Give("a", "1000", &next);
  EXPECT_THAT(std::string(CheckUids(before, next, held).message()),
              HasSubstr("take it from tenant leaving first"));
  EXPECT_TRUE(CheckUids(next, next, held).ok()) << "it was so before";
  // Also of those who declare it.
  Give("a", "1000,1001", &next);
  TenantPolicy a = PolicyOf("a", {{"uids", "1000,1001,1002"}});
  EXPECT_THAT(UidOwners(next, held).TakeOthers(&a),
              ElementsAre(Pair(1000, "leaving"), Pair(1001, "b")));
  EXPECT_THAT(a.uids, ElementsAre(1002));
}

TEST(Uids, TheLaterWriteHasIt) {
  Declared declared;
  Give("b", "1000,1002", &declared);
  Give("a", "1000,1001", &declared);
  TenantPolicy a = PolicyOf("a", {{"uids", "1000,1001"}});
  TenantPolicy b = PolicyOf("b", {{"uids", "1000,1002"}});
  const UidOwners owners(declared);
  EXPECT_THAT(owners.TakeOthers(&a), IsEmpty());
  EXPECT_THAT(owners.TakeOthers(&b), ElementsAre(Pair(1000, "a")));
  EXPECT_THAT(a.uids, ElementsAre(1000, 1001));
  EXPECT_THAT(b.uids, ElementsAre(1002));
}

}  // namespace
}  // namespace gmb::broker
