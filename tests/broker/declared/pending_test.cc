#include "broker/declared/pending.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"

namespace gmb::broker {
namespace {

constexpr char kDevice[] = "host-0";
const absl::Time kStart = absl::UnixEpoch();
const absl::Time kEdit = kStart + absl::Hours(1);

FileState File(const Fields& fields) {
  return {.tenants = {{"a", fields}}, .pools = {}};
}

Declared Started(const Fields& fields) {
  return MergeFile({}, File(fields), kStart).next;
}
std::string Value(const Declared& declared, const std::string& field) {
  const Written* const written = InForce(declared.tenants.at("a"), field);
  return written == nullptr ? "none" : written->value;
}
void Set(const std::string& limit, Declared* declared) {
  Fields fields = InForce(declared->tenants.at("a"));
  fields["limit"] = limit;
  WriteFields("a", fields, {Source::Writer::kOperator, "ann"}, kEdit, declared);
}

// The file wants another limit, which waits.
struct Waiting {
  Declared declared;
  PendingField pending;
};
Waiting Edit(const Declared& before, const Fields& file) {
  const Declared merged = MergeFile(before, File(file), kEdit).next;
  Waiting waiting{merged, {}};
  waiting.pending =
      KeepLimit("a", kDevice, before, merged, kEdit, &waiting.declared);
  return waiting;
}

TEST(Pending, TheLimitStaysAndTheRestOfTheFileHolds) {
  const Waiting waiting = Edit(Started({{"limit", "75%"}, {"weight", "1"}}),
                               {{"limit", "25%"}, {"weight", "2"}});
  EXPECT_EQ(Value(waiting.declared, "limit"), "75%");
  EXPECT_EQ(Value(waiting.declared, "weight"), "2");
  EXPECT_EQ(waiting.pending.field, "limit");
  EXPECT_EQ(waiting.pending.wanted, "25%");
}

TEST(Pending, TheNextMergeOfTheSameFileFindsItAgain) {
  const Fields file = {{"limit", "25%"}};
  const Waiting waiting = Edit(Started({{"limit", "75%"}}), file);
  EXPECT_EQ(Value(MergeFile(waiting.declared, File(file), kEdit).next, "limit"),
            "25%");
}

TEST(Pending, ALimitOfTheDeviceAloneThatIsNewStaysAsThatOfAll) {
  const Fields file = {{"limit", "75%"}, {"devices/host-0/limit", "10%"}};
  const Waiting waiting = Edit(Started({{"limit", "75%"}}), file);
  EXPECT_EQ(Value(waiting.declared, "limit"), "75%");
  EXPECT_EQ(Value(waiting.declared, "devices/host-0/limit"), "75%");
  EXPECT_EQ(Value(MergeFile(waiting.declared, File(file), kEdit).next,
                  "devices/host-0/limit"),
            "10%");
}

TEST(Pending, ALimitOfTheDeviceAloneThatIsTakenOutStays) {
  const Waiting waiting =
      Edit(Started({{"limit", "10%"}, {"devices/host-0/limit", "75%"}}),
           {{"limit", "10%"}});
  EXPECT_EQ(Value(waiting.declared, "devices/host-0/limit"), "75%");
  EXPECT_EQ(waiting.pending.wanted, std::nullopt);
}

// One field, which would take on both.
TEST(Pending, OnTwoDevicesTheSameLimitWaits) {
  const Declared before = Started({{"limit", "75%"}});
  const Declared merged =
      MergeFile(before, File({{"limit", "25%"}}), kEdit).next;
  Declared next = merged;
  for (const char* const device : {"host-0", "host-1"}) {
    const PendingField pending =
        KeepLimit("a", device, before, merged, kEdit, &next);
    EXPECT_EQ(pending.field, "limit");
    EXPECT_EQ(pending.wanted, "25%");
  }
  EXPECT_EQ(Value(next, "limit"), "75%");
}

TEST(Pending, AnOperatorsLimitBeneathItStaysTheOperators) {
  Declared before = Started({{"limit", "50%"}});
  Set("75%", &before);
  const Waiting waiting = Edit(before, {{"limit", "25%"}});
  EXPECT_EQ(Value(waiting.declared, "limit"), "75%");
  EXPECT_EQ(InForce(waiting.declared.tenants.at("a"), "limit")->source.name,
            "ann");
}

TEST(Pending, WhatIsWrittenLaterIsTheLast) {
  const Fields file = {{"limit", "25%"}};
  Waiting waiting = Edit(Started({{"limit", "75%"}}), file);
  EXPECT_FALSE(YieldToLaterWrites(waiting.pending, &waiting.declared));
  Set("60%", &waiting.declared);
  EXPECT_TRUE(YieldToLaterWrites(waiting.pending, &waiting.declared));
  const Declared merged = MergeFile(waiting.declared, File(file), kEdit).next;
  EXPECT_EQ(Value(merged, "limit"), "60%");
  EXPECT_EQ(ByFile(merged.tenants.at("a"), "limit")->value, "25%");
  // Another edit comes after it.
  EXPECT_EQ(
      Value(MergeFile(merged, File({{"limit", "30%"}}), kEdit).next, "limit"),
      "30%");
}

// Nobody has written later: what an operator set for a time has ended.
TEST(Pending, WhatIsInForceAgainIsNoLaterWrite) {
  const Source operators = {Source::Writer::kOperator, "ann"};
  const auto until = [&](Declared* declared) {
    WriteUntil("a", {{"limit", "90%"}}, operators, kStart,
               kEdit + absl::Hours(1), declared);
  };
  const Fields file = {{"limit", "25%"}};
  Declared before = Started({{"limit", "75%"}});
  until(&before);
  Waiting waiting = Edit(before, file);
  EXPECT_EQ(Value(waiting.declared, "limit"), "90%");
  ASSERT_FALSE(Expire(kEdit + absl::Hours(2), &waiting.declared).empty());
  EXPECT_FALSE(YieldToLaterWrites(waiting.pending, &waiting.declared));
  EXPECT_EQ(Value(waiting.declared, "limit"), "75%");
  // An operator's of before the file, as well.
  before = Started({{"limit", "75%"}});
  Set("60%", &before);
  until(&before);
  waiting = Edit(before, file);
  ASSERT_FALSE(Expire(kEdit + absl::Hours(2), &waiting.declared).empty());
  EXPECT_FALSE(YieldToLaterWrites(waiting.pending, &waiting.declared));
  EXPECT_EQ(Value(waiting.declared, "limit"), "60%");
}

TEST(Pending, WhatIsWrittenLaterForATimeIsWaitedFor) {
  const Fields file = {{"limit", "25%"}};
  Waiting waiting = Edit(Started({{"limit", "75%"}}), file);
  FileState state = File(file);
  EXPECT_FALSE(WaitForItsEnd(waiting.pending, waiting.declared, &state));
  WriteUntil("a", {{"limit", "90%"}}, {Source::Writer::kOperator, "ann"}, kEdit,
             kEdit + absl::Hours(1), &waiting.declared);
  EXPECT_FALSE(YieldToLaterWrites(waiting.pending, &waiting.declared));
  ASSERT_TRUE(WaitForItsEnd(waiting.pending, waiting.declared, &state));
  Declared merged = MergeFile(waiting.declared, state, kEdit).next;
  EXPECT_EQ(Value(merged, "limit"), "90%");
  // A later edit is the last.
  state = File({{"limit", "20%"}});
  EXPECT_FALSE(WaitForItsEnd(waiting.pending, merged, &state));
  ASSERT_FALSE(Expire(kEdit + absl::Hours(2), &merged).empty());
  EXPECT_EQ(Value(merged, "limit"), "75%");
  state = File(file);
  EXPECT_FALSE(WaitForItsEnd(waiting.pending, merged, &state));
  EXPECT_EQ(Value(MergeFile(merged, state, kEdit).next, "limit"), "25%");
}

TEST(Pending, ATenantThatIsGoneYieldsNothing) {
  const Waiting waiting = Edit(Started({{"limit", "75%"}}), {{"limit", "25%"}});
  Declared none;
  EXPECT_FALSE(YieldToLaterWrites(waiting.pending, &none));
  EXPECT_EQ(none, Declared());
}

}  // namespace
}  // namespace gmb::broker
