// Refusals in words: each says what is wrong and what to do (docs/protocol.md,
// section 9), and names no other tenant.
#include "broker/machine/refusals.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

quota::Denied DeniedFor(quota::Reason reason, uint64_t deficit = 0) {
  quota::Denied denied;
  denied.reason = reason;
  denied.deficit_bytes = deficit;
  return denied;
}

v1::ErrorDetail DetailOf(const absl::Status& status) {
  return proto::GetErrorDetail(status).value_or(v1::ErrorDetail());
}

bool Says(const absl::Status& status, absl::string_view words) {
  return std::string(status.message()).find(std::string(words)) !=
         std::string::npos;
}

TEST(RefusalsTest, ADenialHasTheReasonTheDeficitAndAWayOut) {
  struct Row {
    quota::Reason reason;
    v1::ErrorReason wire;
    absl::StatusCode code;
    const char* way_out;
  };
  for (const Row& row : std::vector<Row>{
           {quota::Reason::kTenantLimit, v1::TENANT_LIMIT,
            absl::StatusCode::kResourceExhausted, "release leases"},
           {quota::Reason::kTooManyHandles, v1::TOO_MANY_HANDLES,
            absl::StatusCode::kResourceExhausted, "fewer, larger leases"},
           {quota::Reason::kPoolExhausted, v1::POOL_EXHAUSTED,
            absl::StatusCode::kResourceExhausted, "wait longer"},
           {quota::Reason::kOvercommitted, v1::OVERCOMMITTED,
            absl::StatusCode::kFailedPrecondition, "take less"},
       }) {
    const absl::Status status = DenialStatus(DeniedFor(row.reason, 77), 4096);
    EXPECT_EQ(DetailOf(status).reason(), row.wire) << row.way_out;
    EXPECT_EQ(status.code(), row.code) << row.way_out;
    EXPECT_EQ(DetailOf(status).deficit_bytes(), 77u) << row.way_out;
    EXPECT_TRUE(Says(status, row.way_out)) << status;
    EXPECT_TRUE(Says(status, "bytes=4096")) << status;
    EXPECT_TRUE(Says(status, "deficit_bytes=77")) << status;
  }
}

TEST(RefusalsTest, ARetryIsHintedAtOnlyWhereTimeMayHelp) {
  quota::Denied denied = DeniedFor(quota::Reason::kPoolExhausted, 1);
  EXPECT_FALSE(DetailOf(DenialStatus(denied, 1)).has_retry_after());
  denied.retry_after = std::chrono::seconds(1);
  EXPECT_EQ(DetailOf(DenialStatus(denied, 1)).retry_after().seconds(), 1);
  EXPECT_TRUE(DetailOf(DenialStatus(DeniedFor(quota::Reason::kDraining), 1))
                  .has_retry_after());
}

TEST(RefusalsTest, MemoryThatIsKeptIsNotSaidToBeGone) {
  quota::Denied denied = DeniedFor(quota::Reason::kPoolExhausted, 1);
  EXPECT_TRUE(Says(DenialStatus(denied, 1), "no such memory left"));
  denied.claimed = true;
  const absl::Status kept = DenialStatus(denied, 1);
  EXPECT_FALSE(Says(kept, "no such memory left")) << kept;
  EXPECT_TRUE(Says(kept, "kept for a request that is served first")) << kept;
}

TEST(RefusalsTest, APausedOneIsToldToEndItsScopeWhateverLacks) {
  for (const quota::Reason reason :
       {quota::Reason::kPoolExhausted, quota::Reason::kTenantLimit}) {
    quota::Denied denied = DeniedFor(reason, 9);
    denied.pausing = true;
    const absl::Status status = DenialStatus(denied, 1);
    EXPECT_EQ(DetailOf(status).reason(), v1::PAUSING);
    EXPECT_EQ(DetailOf(status).deficit_bytes(), 9u);
    EXPECT_TRUE(Says(status, "end the scope")) << status;
  }
}

TEST(RefusalsTest, OneThatAGateWouldHelpIsToldSo) {
  const auto denied = DeniedFor(quota::Reason::kOvercommitted, 5);
  const absl::Status gate = GateFirst(denied, 10);
  EXPECT_EQ(DetailOf(gate).reason(), v1::OVERCOMMITTED);
  EXPECT_EQ(DetailOf(gate).deficit_bytes(), 5u);
  EXPECT_TRUE(Says(gate, "turn the gate on before acquiring")) << gate;
  EXPECT_FALSE(DetailOf(gate).has_retry_after()) << "time does not help";
  const absl::Status answers = AnswersFirst(denied, 10);
  EXPECT_EQ(DetailOf(answers).reason(), v1::OVERCOMMITTED);
  EXPECT_TRUE(Says(answers, "end that process, or wait for it")) << answers;
  EXPECT_TRUE(DetailOf(answers).has_retry_after());
}

TEST(RefusalsTest, AnOperatorIsToldWhatToChange) {
  struct Row {
    quota::Refusal refusal;
    v1::ErrorReason wire;
    const char* way_out;
    const char* field;
  };
  for (const Row& row : std::vector<Row>{
           {{quota::Reason::kOvercommitted, 5},
            v1::OVERCOMMITTED,
            "lower some guarantee, or enlarge the pool",
            ""},
           {{quota::Reason::kBadRequest, 5},
            v1::BAD_REQUEST,
            "raise the limit or lower the guarantee",
            "guarantee"},
           {{quota::Reason::kBadRequest, 0},
            v1::BAD_REQUEST,
            "a fraction from 0 to 1",
            "quota"},
       }) {
    const absl::Status status = RefusalStatus(row.refusal, "GPU-1");
    EXPECT_EQ(DetailOf(status).reason(), row.wire) << row.way_out;
    EXPECT_TRUE(Says(status, row.way_out)) << status;
    EXPECT_EQ(DetailOf(status).field(), row.field) << row.way_out;
  }
}

// A client's words end up in logs and on terminals: no longer than a name.
TEST(RefusalsTest, WhatAPeerHasSentIsShortened) {
  const std::string endless(10'000, 'x');
  for (const absl::Status& status :
       {NoSuchTenant(endless), NoSuchDevice(endless), NoSuchName(endless)}) {
    EXPECT_LT(status.message().size(), 400u);
    EXPECT_TRUE(Says(status, "xxx"));
  }
}

TEST(RefusalsTest, WhatThereIsNotIsNamedWithWhereToLook) {
  EXPECT_EQ(DetailOf(NoSuchTenant("a")).reason(), v1::NO_SUCH_TENANT);
  EXPECT_TRUE(Says(NoSuchTenant("a"), "gmb tenant list"));
  EXPECT_EQ(DetailOf(NoSuchDevice("d")).reason(), v1::NO_SUCH_DEVICE);
  EXPECT_EQ(DetailOf(NoSuchDevice("d")).field(), "device");
  EXPECT_TRUE(Says(NoSuchDevice("d"), "gmb status"));
  EXPECT_TRUE(Says(NoSuchDevice(""), "several devices"));
  EXPECT_EQ(DetailOf(NoSuchLease(7)).reason(), v1::NO_SUCH_LEASE);
  EXPECT_TRUE(Says(NoSuchLease(7), "lease=7"));
  EXPECT_EQ(DetailOf(NoSuchName("w")).reason(), v1::NO_SUCH_LEASE);
  EXPECT_TRUE(Says(NoSuchName("w"), "make one"));
}

TEST(RefusalsTest, WhatPassesIsHintedAt) {
  EXPECT_EQ(DetailOf(Stopping()).reason(), v1::DRAINING);
  EXPECT_EQ(DetailOf(TooManyRequests(8)).reason(), v1::TOO_MANY_REQUESTS);
  EXPECT_TRUE(DetailOf(TooManyRequests(8)).has_retry_after());
  EXPECT_TRUE(Says(TooManyRequests(8), "max=8"));
  const absl::Status back = NotBroughtBack(absl::InternalError("the bus"));
  EXPECT_EQ(DetailOf(back).reason(), v1::DEVICE_ERROR);
  EXPECT_TRUE(DetailOf(back).has_retry_after());
  EXPECT_TRUE(Says(back, "contents are kept, try again: the bus")) << back;
}

}  // namespace
}  // namespace gmb::broker
