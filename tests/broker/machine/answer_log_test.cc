// A session's kept answers: what a repeat needs, in 32 KiB.
#include "broker/machine/answer_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

v1::BrokerMessage GrantOf(
    uint64_t request,
    const std::string& device = "GPU-8f5c1a2b-0000-1111-2222-333344445555") {
  v1::BrokerMessage answer;
  answer.set_request_id(request);
  answer.mutable_grant()->set_lease_id(1'000'000 + request);
  answer.mutable_grant()->set_bytes(uint64_t{80} << 30);
  answer.mutable_grant()->set_device(device);
  answer.mutable_grant()->set_slabs(80);
  return answer;
}

v1::BrokerMessage ErrorOf(uint64_t request, size_t message_bytes) {
  v1::BrokerMessage answer;
  answer.set_request_id(request);
  answer.mutable_error()->set_code(8);
  answer.mutable_error()->set_message(std::string(message_bytes, 'm'));
  v1::ErrorDetail* const detail = answer.mutable_error()->mutable_detail();
  detail->set_reason(v1::POOL_EXHAUSTED);
  detail->set_deficit_bytes(~uint64_t{0});
  detail->mutable_retry_after()->set_seconds(3600);
  detail->set_field("wait");
  return answer;
}

void ExpectAlike(const v1::BrokerMessage& answer, const AnswerLog& log) {
  const auto kept = log.Find(answer.request_id());
  ASSERT_TRUE(kept.has_value()) << answer.request_id();
  EXPECT_EQ(kept->SerializeAsString(), answer.SerializeAsString());
}

TEST(AnswerLogTest, AnswersAreKeptAsTheyWere) {
  AnswerLog log;
  EXPECT_FALSE(log.Find(1).has_value());
  v1::BrokerMessage restored;
  restored.set_request_id(7);
  restored.mutable_restored();
  v1::BrokerMessage other = GrantOf(3, "host-0");
  other.mutable_grant()->set_attached(true);
  for (const v1::BrokerMessage& answer :
       {GrantOf(1), ErrorOf(2, 100), other, restored, GrantOf(5, "")}) {
    log.Add(answer);
    ExpectAlike(answer, log);
  }
  ExpectAlike(GrantOf(1), log);
  EXPECT_FALSE(log.Find(4).has_value());
  EXPECT_FALSE(log.IsForgotten(4)) << "it was not asked";
}

TEST(AnswerLogTest, AsManyGrantsAreKeptAsASessionMayHaveUnanswered) {
  AnswerLog log;
  for (uint64_t id = 1; id <= 20 * AnswerLog::kMostAnswers; ++id) {
    log.Add(GrantOf(id));
    ASSERT_LE(log.bytes(), AnswerLog::kMostBytes) << id;
  }
  EXPECT_GE(log.answers(), 1000U);
  const uint64_t newest = 20 * AnswerLog::kMostAnswers;
  for (uint64_t id = newest - log.answers() + 1; id <= newest; ++id) {
    ExpectAlike(GrantOf(id), log);
    EXPECT_FALSE(log.IsForgotten(id));
  }
  EXPECT_FALSE(log.Find(newest - log.answers()).has_value());
  EXPECT_TRUE(log.IsForgotten(newest - log.answers()));
}

TEST(AnswerLogTest, TheLargestAnswersCostNoMore) {
  for (const size_t bytes : {0U, 100U, 511U, 512U, 513U, 5'000U, 1'000'000U}) {
    AnswerLog log;
    for (uint64_t id = 1; id <= 3'000; ++id) {
      log.Add(ErrorOf(id, bytes));
      ASSERT_LE(log.bytes(), AnswerLog::kMostBytes) << bytes;
    }
    EXPECT_GT(log.answers(), 40U) << bytes;
    const auto kept = log.Find(3'000);
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(kept->error().detail().SerializeAsString(),
              ErrorOf(1, 0).error().detail().SerializeAsString());
    EXPECT_TRUE(log.IsForgotten(3'000 - log.answers()));
    EXPECT_FALSE(log.IsForgotten(3'000 - log.answers() + 1));
  }
}

TEST(AnswerLogTest, ALongMessageIsCutBetweenCharacters) {
  AnswerLog log;
  v1::BrokerMessage answer = ErrorOf(1, 0);
  std::string message = "m";
  while (message.size() < 2'000) message += "\xe2\x82\xac";  // a euro
  answer.mutable_error()->set_message(message);
  log.Add(answer);
  const std::string kept = log.Find(1)->error().message();
  EXPECT_LE(kept.size(), AnswerLog::kMostMessageBytes + 3);
  EXPECT_EQ((kept.size() - 1 - 3) % 3, 0U);
  EXPECT_EQ(kept.substr(kept.size() - 3), "...");
}

TEST(AnswerLogTest, ManyDevicesCostNoMore) {
  AnswerLog log;
  for (uint64_t id = 1; id <= 5'000; ++id) {
    const std::string device(id % 90, static_cast<char>('a' + id % 26));
    log.Add(GrantOf(id, device));
    ExpectAlike(GrantOf(id, device), log);
    ASSERT_LE(log.bytes(), AnswerLog::kMostBytes);
  }
}

TEST(AnswerLogTest, ALateAnswerIsKeptAsLongAsOthers) {
  AnswerLog log;
  for (uint64_t id = 2; id <= 5'000; ++id) log.Add(GrantOf(id));
  log.Add(GrantOf(1));  // it has waited all the time
  EXPECT_TRUE(log.IsForgotten(1));
  ExpectAlike(GrantOf(1), log);
  for (uint64_t id = 5'001; id <= 5'500; ++id) log.Add(GrantOf(id));
  ExpectAlike(GrantOf(1), log);
}

TEST(AnswerLogTest, WhatIsAskedAgainWithoutEffectIsNotKept) {
  AnswerLog log;
  v1::BrokerMessage report;
  report.set_request_id(1);
  report.mutable_quota_report()->set_tenant("a");
  log.Add(report);
  EXPECT_FALSE(log.Find(1).has_value());
  EXPECT_FALSE(log.IsForgotten(1));
  EXPECT_EQ(log.answers(), 0U);
}

TEST(AnswerLogTest, ASessionOfFewAnswersCostsLittle) {
  AnswerLog log;
  log.Add(GrantOf(1));
  EXPECT_LE(log.bytes(), 4096U);
}

}  // namespace
}  // namespace gmb::broker
