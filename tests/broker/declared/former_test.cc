#include "broker/declared/former.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

using ::testing::IsEmpty;

const Source kSetter{Source::Writer::kOperator, "uid 0"};
const absl::Time kLastChange = absl::FromUnixSeconds(1'795'184'546);

Fields AllFields(const Fields& fields) {
  return FieldsOf(PolicyOf("a", fields));
}

// The values that `a` had before the change.
Fields FormerAfter(const Declared& before, Declared after) {
  NoteFormer(before, &after);
  return after.tenants["a"].former;
}

Declared MadeWith(const Fields& fields) {
  Declared declared;
  WriteFields("a", AllFields(fields), kSetter, kLastChange, &declared);
  return declared;
}

TEST(FormerTest, IsAllThatWasInForceBeforeTheChange) {
  const Declared made = MadeWith({{"limit", "50%"}, {"weight", "3"}});
  EXPECT_THAT(FormerAfter(Declared(), made), IsEmpty());
  Declared set = made;
  WriteFields("a", AllFields({{"limit", "25%"}}), kSetter, kLastChange, &set);
  EXPECT_EQ(FormerAfter(made, set),
            AllFields({{"limit", "50%"}, {"weight", "3"}}));
}

TEST(FormerTest, StaysWhereTheValuesStay) {
  Declared before = MadeWith({{"limit", "50%"}});
  before.tenants["a"].former = AllFields({{"limit", "75%"}});
  Declared after = before;
  FileState file;
  file.tenants["a"] = AllFields({{"limit", "50%"}});
  after = MergeFile(before, file, kLastChange).next;
  ASSERT_NE(after.tenants["a"], before.tenants["a"]);  // the file's by now
  EXPECT_EQ(FormerAfter(before, after), AllFields({{"limit", "75%"}}));
}

TEST(FormerTest, OfOneThatWasDeletedNothingIsKept) {
  Declared before = MadeWith({{"limit", "50%"}});
  before.tenants["a"].former = AllFields({{"limit", "75%"}});
  Declared deleted = before;
  Delete("a", &deleted);
  EXPECT_THAT(FormerAfter(before, deleted), IsEmpty());
  deleted.tenants["a"].former = before.tenants["a"].former;
  Declared again = deleted;
  WriteFields("a", AllFields({{"limit", "10%"}}), kSetter, kLastChange, &again);
  EXPECT_THAT(FormerAfter(deleted, again), IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
