#include "broker/log/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "broker/log/rate_limit.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const absl::Time kAt = absl::FromUnixMicros(1'795'184'546'123'456);

std::string Text(std::initializer_list<LogField> fields) {
  return FormatLogLine(LogFormat::kText, kAt, LogLevel::kInfo, "tried", fields);
}
std::string Json(std::initializer_list<LogField> fields) {
  return FormatLogLine(LogFormat::kJson, kAt, LogLevel::kWarning, "tried",
                       fields);
}

TEST(LogLine, TextIsTimeLevelEventAndKeyValuePairs) {
  EXPECT_EQ(Text({{"tenant", "a"},
                  {"bytes", uint64_t{1} << 40},
                  {"took", absl::Milliseconds(1500)},
                  {"ok", true},
                  {"program", std::string("my server")}}),
            "2026-11-20T14:22:26.123456Z info tried tenant=a "
            "bytes=1099511627776 took=1.5 ok=true "
            "program=\"my server\"");
}

TEST(LogLine, TextQuotesWhatCouldBeMistaken) {
  EXPECT_THAT(Text({{"x", ""}}), EndsWith(" x=\"\""));
  EXPECT_THAT(Text({{"x", "a=b"}}), EndsWith(" x=\"a=b\""));
  EXPECT_THAT(Text({{"x", "say \"hi\""}}), EndsWith(" x=\"say \\\"hi\\\"\""));
  EXPECT_THAT(Text({{"x", "it's \\'"}}), EndsWith(" x=\"it's \\\\'\""));
  EXPECT_THAT(Text({{"x", "a\nlevel=error"}}),
              EndsWith(" x=\"a\\nlevel=error\""));
}

TEST(LogLine, JsonHasNumbersBareAndTextEscaped) {
  EXPECT_EQ(
      Json({{"bytes", 17}, {"ok", false}, {"x", "q\" b\\ n\n \xc3\xa9 \xff"}}),
      "{\"at\":\"2026-11-20T14:22:26.123456Z\",\"level\":\"warning\",\"event\":"
      "\"tried\","
      "\"bytes\":17,\"ok\":false,\"x\":\"q\\\" b\\\\ n\\u000a \xc3\xa9 "
      "\\ufffd\"}");
  EXPECT_THAT(Json({{"x", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("\"nan\""));
}

TEST(LogLine, LongValuesAreCut) {
  const std::string line = Text({{"x", std::string(100'000, 'y')}});
  EXPECT_LT(line.size(), 1'200u);
  EXPECT_THAT(line, EndsWith("..."));
}

TEST(LogLine, AnyBytesGiveOneLineOfValidText) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 32, ' ');
    for (char& c : bytes) c = static_cast<char>(random());
    for (const std::string& line :
         {Text({{"x", bytes}}), Json({{"x", bytes}})}) {
      for (const char c : line) {
        ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line;
        ASSERT_NE(c, 0x7F) << line;
      }
    }
  }
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  ConfigureLog({.format = LogFormat::kText, .level = LogLevel::kWarning});
  testing::internal::CaptureStderr();
  LogEvent(LogLevel::kInfo, "quiet");
  LogEvent(LogLevel::kError, "loud", {{"tenant", "a"}});
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, AllOf(HasSubstr(" error loud tenant=a\n"),
                             Not(HasSubstr("quiet"))));
}

TEST(Log, LinesOfManyThreadsStayWhole) {
  ConfigureLog({.format = LogFormat::kJson, .level = LogLevel::kInfo});
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 250; ++i)
        LogEvent(LogLevel::kInfo, "said", {{"thread", t}, {"text", "{}"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> lines = absl::StrSplit(
      testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1000u);
  for (const std::string& line : lines) {
    EXPECT_THAT(line,
                AllOf(StartsWith("{\"at\":\""), EndsWith("\"text\":\"{}\"}")));
  }
}

TEST(Log, WhatAClientCausesIsLimitedAndCounted) {
  ConfigureLog({});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 10'000; ++i)
    LogClientEvent(LogLevel::kInfo, "refused", {{"tenant", "a"}});
  const std::string written = testing::internal::GetCapturedStderr();
  const auto lines = std::count(written.begin(), written.end(), '\n');
  EXPECT_GE(lines, 20);
  EXPECT_LT(lines, 100);
}

TEST(RateLimit, LetsABurstThroughThenSoManyASecondAndSaysWhatItHeldBack) {
  RateLimit limit(/*burst=*/3, /*per_second=*/2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Admit("x", kAt), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.Admit("x", kAt), std::nullopt);
  EXPECT_EQ(limit.Admit("y", kAt), 0u);
  EXPECT_EQ(limit.Admit("x", kAt + absl::Milliseconds(500)), 5u);
  EXPECT_EQ(limit.Admit("x", kAt + absl::Milliseconds(500)), std::nullopt);
}

TEST(RateLimit, SurvivesAClockThatIsSetBack) {
  RateLimit limit(/*burst=*/1, /*per_second=*/1);
  EXPECT_EQ(limit.Admit("x", kAt), 0u);
  EXPECT_EQ(limit.Admit("x", kAt - absl::Hours(1)), std::nullopt);
  EXPECT_EQ(limit.Admit("x", kAt - absl::Hours(1) + absl::Seconds(1)), 1u);
}

}  // namespace
}  // namespace gmb::broker
