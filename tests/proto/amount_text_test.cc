#include "proto/amount_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace gmb::proto {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kGiB = uint64_t{1} << 30;

uint64_t BytesOf(const std::string& text) {
  const auto amount = ParseAmount(text);
  EXPECT_TRUE(amount.ok()) << text << ": " << amount.status();
  if (!amount.ok()) return 0;
  EXPECT_EQ(amount->kind_case(), v1::Amount::kBytes) << text;
  return amount->bytes();
}

double ShareOf(const std::string& text) {
  const auto amount = ParseAmount(text);
  EXPECT_TRUE(amount.ok()) << text << ": " << amount.status();
  if (!amount.ok()) return -1;
  EXPECT_EQ(amount->kind_case(), v1::Amount::kFraction) << text;
  return amount->fraction();
}

std::string Refusal(absl::string_view text) {
  const auto amount = ParseAmount(text);
  EXPECT_FALSE(amount.ok()) << text;
  EXPECT_EQ(amount.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(amount.status().message());
}

TEST(AmountText, UnitsArePowersOf1024OrOf1000) {
  EXPECT_EQ(BytesOf("0"), 0u);
  EXPECT_EQ(BytesOf("17"), 17u);
  EXPECT_EQ(BytesOf("17B"), 17u);
  EXPECT_EQ(BytesOf("1KiB"), 1024u);
  EXPECT_EQ(BytesOf("512MiB"), uint64_t{512} << 20);
  EXPECT_EQ(BytesOf("60GiB"), 60 * kGiB);
  EXPECT_EQ(BytesOf("60Gi"), 60 * kGiB);
  EXPECT_EQ(BytesOf("60 gib"), 60 * kGiB);
  EXPECT_EQ(BytesOf(" 2TiB "), 2048 * kGiB);
  EXPECT_EQ(BytesOf("2GB"), 2'000'000'000u);
}

TEST(AmountText, PartsOfAUnitAreExact) {
  EXPECT_EQ(BytesOf("1.5GiB"), kGiB + kGiB / 2);
  EXPECT_EQ(BytesOf("0.1KiB"), 102u);  // 102.4
  EXPECT_EQ(BytesOf("1.000000000000000000000000000001KiB"), 1024u);
}

TEST(AmountText, TheLargestSizeFitsAndTheNextIsRefused) {
  EXPECT_EQ(BytesOf("18446744073709551615"),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(BytesOf("9223372036854775808"), uint64_t{1} << 63);
  EXPECT_THAT(Refusal("18446744073709551616"), HasSubstr("64 bits"));
  EXPECT_THAT(Refusal("16777216TiB"), HasSubstr("64 bits"));
  EXPECT_EQ(BytesOf("16777215.5TiB"),
            std::numeric_limits<uint64_t>::max() - (uint64_t{1} << 39) + 1);
}

TEST(AmountText, SharesAreWrittenInPercent) {
  EXPECT_DOUBLE_EQ(ShareOf("25%"), 0.25);
  EXPECT_DOUBLE_EQ(ShareOf("33.3%"), 0.333);
  EXPECT_DOUBLE_EQ(ShareOf("0%"), 0.0);
  EXPECT_DOUBLE_EQ(ShareOf("100 %"), 1.0);
  EXPECT_DOUBLE_EQ(ShareOf("max"), 1.0);
}

TEST(AmountText, ANumberBeginsWithNoZeroButItsOnly) {
  for (const char* const text : {"010", "00", "01GiB", "00.5GiB", "010%"})
    EXPECT_THAT(Refusal(text), HasSubstr(text));
  EXPECT_EQ(BytesOf("0.5KiB"), 512u);
  EXPECT_DOUBLE_EQ(ShareOf("0.5%"), 0.005);
}

TEST(AmountText, WhatIsNoAmountIsRefusedWithWhatIsAccepted) {
  for (const std::string& text : std::vector<std::string>{
           "",          " ",        "%",
           "GiB",       "-1",       "-1GiB",
           "-5%",       "100.1%",   "1e300%",
           "nan",       "NaN%",     "inf%",
           "inf",       "0x10",     "1e9",
           "0.25",      "1.GiB",    ".5GiB",
           "1,5GiB",    "5 5GiB",   "60G",
           "60XiB",     "5%%",      "5%GiB",
           "+5GiB",     "1.2.3GiB", std::string("1\0GiB", 5),
           "60GiB\n60", "max%",     "2.5B"}) {
    const std::string message = Refusal(text);
    EXPECT_THAT(message, HasSubstr("512MiB")) << text;
    EXPECT_THAT(message, HasSubstr("100%")) << text;
  }
  EXPECT_THAT(Refusal("-1GiB"), HasSubstr("negative"));
  EXPECT_THAT(Refusal("-5%"), HasSubstr("negative"));
  EXPECT_THAT(Refusal("101%"), HasSubstr("above 100%"));
}

TEST(AmountText, ARefusalShowsNoRawControlCharactersAndStaysShort) {
  const std::string message = Refusal(std::string(10'000, '\n') + "x");
  EXPECT_LT(message.size(), 600u);
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(AmountText, ParseBytesTakesNoShare) {
  EXPECT_EQ(ParseBytes("2MiB").value_or(0), uint64_t{2} << 20);
  EXPECT_FALSE(ParseBytes("25%").ok());
  EXPECT_FALSE(ParseBytes("max").ok());
  EXPECT_THAT(std::string(ParseBytes("x").status().message()),
              Not(HasSubstr("100%")));
}

TEST(AmountText, TablesShowOneDecimal) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(60 * kGiB), "60.0 GiB");
  EXPECT_EQ(FormatBytes(kGiB - 1), "1.0 GiB");
  EXPECT_EQ(FormatBytes(2048 * kGiB), "2.0 TiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(AmountText, AnyTextIsAnAmountWithinBoundsOrRefused) {
  std::mt19937_64 random(7);
  const std::string alphabet = "0123456789.%-+ eEkKmMgGtTiIbBxXnNaAfF\n";
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const auto amount = ParseAmount(text);
    if (!amount.ok() || amount->kind_case() == v1::Amount::kBytes) continue;
    EXPECT_GE(amount->fraction(), 0.0) << text;
    EXPECT_LE(amount->fraction(), 1.0) << text;
  }
}

}  // namespace
}  // namespace gmb::proto
