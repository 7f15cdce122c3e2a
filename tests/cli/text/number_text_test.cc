#include "client/cli/text/number_text.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(NumberTextTest, WholeNumbersAreDecimalDigits) {
  EXPECT_EQ(ParseWhole("0", 0, kMax).value(), 0U);
  EXPECT_EQ(ParseWhole("10", 0, kMax).value(), 10U);
  EXPECT_EQ(ParseWhole("18446744073709551615", 0, kMax).value(), kMax);
}

TEST(NumberTextTest, WhatOtherProgramsWouldTakeForANumberIsRefused) {
  for (const char* const text :
       {"", " ", " 1", "1 ", "+1", "-1", "010", "00", "0x10", "1e3", "1.0",
        "1,2", "1\n", "ten", "18446744073709551616"}) {
    EXPECT_FALSE(ParseWhole(text, 0, kMax).ok()) << text;
  }
}

TEST(NumberTextTest, ARefusalSaysWhatToWriteAndWhatItGot) {
  const std::string message(ParseWhole("", 1, 64).status().message());
  EXPECT_EQ(message,
            "write a whole number from 1 to 64 in decimal digits; got \"\"");
  EXPECT_FALSE(ParseWhole("0", 1, 64).ok());
  EXPECT_FALSE(ParseWhole("65", 1, 64).ok());
  EXPECT_LT(
      ParseWhole(std::string(10'000, '9'), 1, 64).status().message().size(),
      150U);
}

TEST(NumberTextTest, WeightsMayHaveAFractionAndAreAboveZero) {
  EXPECT_DOUBLE_EQ(ParseWeight("2").value(), 2);
  EXPECT_DOUBLE_EQ(ParseWeight("0.5").value(), 0.5);
  EXPECT_DOUBLE_EQ(ParseWeight("10.25").value(), 10.25);
  for (const std::string text :
       {"", "0", "0.0", "-1", "+1", " 1", "1e3", ".5", "5.", "010", "00.5",
        "inf", "nan", "0x1", "heavy", "1..2", "1.2.3"}) {
    EXPECT_FALSE(ParseWeight(text).ok()) << text;
  }
  EXPECT_FALSE(ParseWeight(std::string(400, '9')).ok()) << "not finite";
  EXPECT_THAT(std::string(ParseWeight("").status().message()),
              HasSubstr("such as 2 or 0.5"));
}

TEST(NumberTextTest, BytesAreDecimalOrHexadecimal) {
  EXPECT_EQ(ParseByte("0xA5").value(), 0xA5);
  EXPECT_EQ(ParseByte("0Xa").value(), 0x0A);
  EXPECT_EQ(ParseByte("165").value(), 165);
  for (const char* const text :
       {"", "0x", "0x100", "256", "010", "+1", "-1", "0x-1", "0x 1", "A5"}) {
    EXPECT_FALSE(ParseByte(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gmb::cli
