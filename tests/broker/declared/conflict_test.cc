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
  const absl::Status refused = CheckConflicts(With("60%", "50%"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("tenant a: the guarantee is above the limit: "
                        "guarantee=60% is of the file, limit=50% is of "
                        "operator ann"));
  EXPECT_FALSE(CheckConflicts(With("200", "100")).ok());
}

TEST(Conflict, WhatFitsOrCannotBeToldIsLeftAlone) {
  EXPECT_TRUE(CheckConflicts(With("50%", "50%")).ok());
  EXPECT_TRUE(CheckConflicts(With("60%", "100")).ok());
  Declared deleted = With("60%", "50%");
  Delete("a", &deleted);
  EXPECT_TRUE(CheckConflicts(deleted).ok());
}

TEST(Conflict, OneOnADeviceIsFoundAgainstTheLimitOfEveryDevice) {
  Declared declared = With("10%", "50%");
  PutWritten("devices/GPU-1/guarantee",
             {.value = "60%", .source = {}, .order = 99},
             &declared.tenants["a"]);
  EXPECT_THAT(std::string(CheckConflicts(declared).message()),
              HasSubstr("devices/GPU-1/guarantee=60% is of the file"));
}

TEST(Conflict, SourcesAreSaidWhereTheyDiffer) {
  EXPECT_EQ(DifferentSources(With("60%", "50%").tenants["a"]),
            "guarantee=60% is of the file, limit=50% is of operator ann");
  EXPECT_EQ(DifferentSources(With("60%", "100%").tenants["a"]), "");
}

}  // namespace
}  // namespace gmb::broker
