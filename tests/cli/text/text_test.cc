#include "client/cli/text/text.h"

#include <cstdint>
#include <limits>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

TEST(TextTest, SizesHaveTwoDecimalsAndABinaryUnit) {
  EXPECT_EQ(SizeText(0), "0 B");
  EXPECT_EQ(SizeText(1023), "1023 B");
  EXPECT_EQ(SizeText(1536), "1.50 KiB");
  EXPECT_EQ(SizeText(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(SizeText(std::numeric_limits<uint64_t>::max()), "16.00 EiB");
}

TEST(TextTest, ASizeThatRoundsUpToTheNextUnitIsSaidInIt) {
  EXPECT_EQ(SizeText((uint64_t{1} << 20) - 1), "1.00 MiB");
}

TEST(TextTest, AmountsAreSharesOrSizes) {
  v1::Amount amount;
  EXPECT_EQ(AmountText(amount), "-");
  amount.set_fraction(0.125);
  EXPECT_EQ(AmountText(amount), "12.5%");
  amount.set_bytes(uint64_t{60} << 30);
  EXPECT_EQ(AmountText(amount), "60.00 GiB");
}

TEST(TextTest, APartOfNothingHasNoPercentage) {
  EXPECT_EQ(PercentText(1, 8), "12.5%");
  EXPECT_EQ(PercentText(0, 0), "-");
}

TEST(TextTest, ADurationGoesOverTheWireAndBack) {
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(250),
        absl::Hours(1) + absl::Nanoseconds(999'999'999)}) {
    EXPECT_EQ(ToDuration(ToProto(duration)), duration);
  }
}

TEST(TextTest, DurationsUseTheUnitsThatPeopleWouldUse) {
  EXPECT_EQ(DurationText(absl::Milliseconds(12)), "12 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(1500)), "1.5 s");
  EXPECT_EQ(DurationText(absl::Seconds(725)), "12m 5s");
  EXPECT_EQ(DurationText(absl::Minutes(192)), "3h 12m");
  EXPECT_EQ(DurationText(absl::Hours(76)), "3d 4h");
  EXPECT_EQ(DurationText(-absl::Seconds(1)), "0 ms");
}

TEST(TextTest, AnUnsetTimeHasNoAge) {
  EXPECT_EQ(AgeText(google::protobuf::Timestamp(), absl::Now()), "-");
}

TEST(TextTest, OneThingIsNotManyThings) {
  EXPECT_EQ(CountText(1, "slab"), "1 slab");
  EXPECT_EQ(CountText(0, "slab"), "0 slabs");
}

TEST(TextTest, AReasonOfANewerBrokerIsSaidAsANumber) {
  EXPECT_EQ(ReasonText(v1::TENANT_LIMIT), "TENANT_LIMIT");
  EXPECT_EQ(ReasonText(static_cast<v1::ErrorReason>(4000)), "REASON_4000");
}

TEST(TextTest, ControlCharactersAreNotPrinted) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc"), "a?[2Jb?c");
}

TEST(TextTest, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("a█b"), 3U);
}

TEST(TextTest, LinesBreakAtSpacesAndLongWordsStayWhole) {
  EXPECT_EQ(Wrap("one two three", 7),
            (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(Wrap("/a/long/path x", 4),
            (std::vector<std::string>{"/a/long/path", "x"}));
  EXPECT_EQ(Wrap("", 4), std::vector<std::string>{""});
}

}  // namespace
}  // namespace gmb::cli
