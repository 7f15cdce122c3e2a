#include "broker/declared/conflict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;

// The file's guarantee, and an operator's limit.
Declared With(const std::string& guarantee, const std::string& limit) {
  FileState file;
  file.tenants["a"] = FieldsOf(PolicyOf("a", {{"guarantee", guarantee}}));
  Declared declared = MergeFile({}, file, absl::UnixEpoch()).next;
  Fields fields = file.tenants["a"];
  fields["limit"] = limit;
  WriteFields("a", fields, {Source::Writer::kOperator, "ann"},
              absl::UnixEpoch(), &declared);
  return declared;
}

TEST(Conflict, AGuaranteeAboveTheLimitOfAnotherSourceIsRefusedAndBothAreNamed) {
  const absl::Status refused = CheckConflicts({}, With("60%", "50%"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("tenant a: the guarantee is above the limit: "
                        "guarantee=60% is of the file, limit=50% is of "
                        "operator ann"));
  EXPECT_FALSE(CheckConflicts({}, With("200", "100")).ok());
}

TEST(Conflict, WhatFitsOrCannotBeToldIsLeftAlone) {
  EXPECT_TRUE(CheckConflicts({}, With("50%", "50%")).ok());
  EXPECT_TRUE(CheckConflicts({}, With("60%", "100")).ok());
  Declared deleted = With("60%", "50%");
  Delete("a", &deleted);
  EXPECT_TRUE(CheckConflicts({}, deleted).ok());
}

TEST(Conflict, OneOnADeviceIsFoundAgainstTheLimitOfEveryDevice) {
  Declared declared = With("10%", "50%");
  PutWritten("devices/GPU-1/guarantee",
             {.value = "60%", .source = {}, .order = 99},
             &declared.tenants["a"]);
  EXPECT_THAT(std::string(CheckConflicts({}, declared).message()),
              HasSubstr("devices/GPU-1/guarantee=60% is of the file"));
}

TEST(Conflict, AGuaranteeOfEveryDeviceIsFoundAgainstTheLimitOfOne) {
  Declared declared = With("30%", "50%");
  PutWritten("devices/GPU-1/limit",
             {.value = "20%",
              .source = {Source::Writer::kOperator, "bob"},
              .order = 99},
             &declared.tenants["a"]);
  EXPECT_THAT(std::string(CheckConflicts({}, declared).message()),
              HasSubstr("guarantee=30% is of the file, "
                        "devices/GPU-1/limit=20% is of operator bob"));
}

// Nobody has written it: a value for a time has ended.
TEST(Conflict, OneThatWasThereBeforeIsLeftAlone) {
  const Declared before = With("60%", "50%");
  EXPECT_TRUE(CheckConflicts(before, before).ok());
  EXPECT_TRUE(HasFormerPair(before.tenants.at("a"), before.tenants.at("a")));
  const Declared written = With("60%", "40%");
  EXPECT_FALSE(CheckConflicts(before, written).ok());
  EXPECT_FALSE(HasFormerPair(before.tenants.at("a"), written.tenants.at("a")));
  Declared gone = before;
  Delete("a", &gone);
  EXPECT_FALSE(CheckConflicts(gone, before).ok()) << "it is made anew";
}

TEST(Conflict, OneToComeIsFoundAtTheEndThatBringsIt) {
  Declared before = With("10%", "60%");
  const absl::Time at = absl::UnixEpoch();
  const auto until = [&](const std::string& field, const std::string& value,
                         int hours, Declared* declared) {
    WriteUntil("a", {{field, value}}, {Source::Writer::kOverride, "ann"}, at,
               at + absl::Hours(hours), declared);
  };
  until("limit", "80%", 1, &before);
  until("guarantee", "5%", 1, &before);
  EXPECT_TRUE(CheckConflictsToCome("a", before, before).ok());
  Declared next = before;
  PutWritten("guarantee",
             {.value = "70%",
              .source = {Source::Writer::kOperator, "bob"},
              .order = next.next_order++},
             &next.tenants["a"]);
  EXPECT_TRUE(CheckConflicts(before, next).ok());
  EXPECT_THAT(std::string(CheckConflictsToCome("a", before, next).message()),
              HasSubstr("once what was set for a time is over: tenant a: the "
                        "guarantee is above the limit: guarantee=70% is of "
                        "operator bob, limit=60% is of operator ann"));
  EXPECT_TRUE(CheckConflictsToCome("b", before, next).ok());
  // Between two ends, though not after the last one.
  Declared between = before;
  until("limit", "7%", 2, &between);
  EXPECT_FALSE(CheckConflictsToCome("a", before, between).ok());
}

TEST(Conflict, SourcesAreSaidWhereTheyDiffer) {
  EXPECT_EQ(DifferentSources(With("60%", "50%").tenants["a"]),
            "guarantee=60% is of the file, limit=50% is of operator ann");
  EXPECT_EQ(DifferentSources(With("60%", "100%").tenants["a"]), "");
}

}  // namespace
}  // namespace gmb::broker
