// The wire's forms of what the machine knows.
#include "broker/machine/wire_form.h"

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;

google::protobuf::Duration DurationOf(int64_t s, int32_t ns = 0) {
  google::protobuf::Duration duration;
  duration.set_seconds(s);
  duration.set_nanos(ns);
  return duration;
}

TEST(WireFormTest, AClientsWaitIsCutToBetweenNothingAndAnHour) {
  const std::vector<std::pair<google::protobuf::Duration, nanoseconds>> rows = {
      {DurationOf(0), nanoseconds(0)},
      {DurationOf(0, 1), nanoseconds(1)},
      {DurationOf(5, 500'000'000), nanoseconds(5'500'000'000)},
      {DurationOf(3600), hours(1)},
      {DurationOf(3600, 1), hours(1)},
      {DurationOf(-1), nanoseconds(0)},
      {DurationOf(0, -1), nanoseconds(0)},
      {DurationOf(std::numeric_limits<int64_t>::max(),
                  std::numeric_limits<int32_t>::max()),
       hours(1)},
      {DurationOf(std::numeric_limits<int64_t>::min(),
                  std::numeric_limits<int32_t>::min()),
       nanoseconds(0)},
  };
  for (const auto& [asked, wait] : rows)
    EXPECT_EQ(SaneWait(asked), wait) << asked.ShortDebugString();
}

TEST(WireFormTest, AClientsErrorIsItsCodeAndTheFrontOfItsWords) {
  v1::Error error;
  error.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  error.set_message(std::string(199, 'x') + "\xc3\xa4\xc3\xa4");
  error.mutable_detail()->set_field(std::string(8'000, 'y'));
  EXPECT_EQ(FromClient(error),
            absl::ResourceExhaustedError(std::string(199, 'x')));
  error.set_message(std::string(198, 'x') + "\xc3\xa4\xc3\xa4");
  EXPECT_EQ(FromClient(error),
            absl::ResourceExhaustedError(std::string(198, 'x') + "\xc3\xa4"));
  error.set_message(std::string(198, 'x') + "\xf0\x9f\x98\x80");
  EXPECT_EQ(FromClient(error),
            absl::ResourceExhaustedError(std::string(198, 'x')));
  EXPECT_EQ(FromClient({}), absl::UnknownError("the client does not say why"));
}

TEST(WireFormTest, EachReasonOfTheEngineHasTheWiresName) {
  for (const auto reason :
       {quota::Reason::kBadRequest, quota::Reason::kNoSuchTenant,
        quota::Reason::kBadState, quota::Reason::kTenantLimit,
        quota::Reason::kTooManyHandles, quota::Reason::kPoolExhausted,
        quota::Reason::kOvercommitted, quota::Reason::kDraining}) {
    EXPECT_EQ(v1::ErrorReason_Name(ToProto(reason)), quota::ReasonName(reason));
  }
  // Two have names of the clients' side.
  EXPECT_EQ(ToProto(quota::Reason::kNoSuchPool), v1::NO_SUCH_DEVICE);
  EXPECT_EQ(ToProto(quota::Reason::kCancelled), v1::CANCELLED_BY_CLIENT);
}

TEST(WireFormTest, AmountsComeBackAsTheyWere) {
  for (const quota::Amount amount :
       {quota::Amount::Bytes(0), quota::Amount::Bytes(~uint64_t{0}),
        quota::Amount::Fraction(0), quota::Amount::Fraction(0.25)}) {
    EXPECT_EQ(FromProto(ToProto(amount)), amount);
  }
  EXPECT_EQ(FromProto(v1::Amount()), quota::Amount::Bytes(0))
      << "one that says nothing is 0 bytes";
}

TEST(WireFormTest, AQuotaIsSaidAsItWasAskedFor) {
  const v1::Quota quota = ToProto(quota::TenantQuota{
      quota::Amount::Bytes(5), quota::Amount::Fraction(0.5), 2.5});
  EXPECT_EQ(quota.guarantee().bytes(), 5u);
  EXPECT_EQ(quota.limit().fraction(), 0.5);
  EXPECT_EQ(quota.weight(), 2.5);
}

TEST(WireFormTest, TimesKeepTheirNanosecondsAndADurationIsNeverNegative) {
  EXPECT_EQ(ToProto(nanoseconds(1'500'000'001)).seconds(), 1);
  EXPECT_EQ(ToProto(nanoseconds(1'500'000'001)).nanos(), 500'000'001);
  EXPECT_EQ(ToProto(-seconds(3)).seconds(), 0);
  EXPECT_EQ(ToProto(-nanoseconds(3)).nanos(), 0);
  EXPECT_EQ(ToProto(absl::FromUnixNanos(7'000'000'002)).seconds(), 7);
  EXPECT_EQ(ToProto(absl::FromUnixNanos(7'000'000'002)).nanos(), 2);
}

TEST(WireFormTest, ADeviceIsSaidWithItsKind) {
  const std::vector<std::pair<device::DeviceKind, v1::DeviceKind>> kinds = {
      {device::DeviceKind::kVmm, v1::DEVICE_KIND_VMM},
      {device::DeviceKind::kIpc, v1::DEVICE_KIND_IPC},
      {device::DeviceKind::kHost, v1::DEVICE_KIND_HOST}};
  for (const auto& [kind, wire] : kinds) {
    const v1::DeviceInfo info =
        ToProto(device::DeviceInfo{kind, "GPU-1", "H200", 100, 2});
    EXPECT_EQ(info.kind(), wire);
    EXPECT_EQ(info.uuid(), "GPU-1");
    EXPECT_EQ(info.name(), "H200");
    EXPECT_EQ(info.total_bytes(), 100u);
    EXPECT_EQ(info.granularity_bytes(), 2u);
  }
}

class MoveMessageTest : public MachineFixture {};

TEST_F(MoveMessageTest, WhatLeavesIsEvictedAndWhatComesIsMapped) {
  SetTenant("a");
  SimClient* client = Parked("a");
  const quota::LeaseId id = Lease(client, 3);
  const auto& lease = state().LeaseAt(id);
  const Mapping mapping{.session = 1, .move = 5};
  const auto is_map = [&] {
    const v1::BrokerMessage move = MoveMessage(lease, mapping);
    EXPECT_EQ(move.map().lease_id(), id.value);
    EXPECT_EQ(move.map().move(), 5u);
    EXPECT_EQ(move.map().slabs(), lease.held->slabs.size());
    EXPECT_EQ(move.map().bytes(), 3 * kGranule) << "as granted";
  };
  // A reader may be told to map one that others are using.
  is_map();
  Reclaim("a");
  ASSERT_EQ(Where(id), "evicting");
  const v1::BrokerMessage move = MoveMessage(lease, mapping);
  EXPECT_EQ(move.request_id(), 0u) << "the broker speaks by itself";
  EXPECT_EQ(move.evict().lease_id(), id.value);
  EXPECT_EQ(move.evict().move(), 5u);
  Work();
  Restore(client);
  RunDevice();
  ASSERT_EQ(Where(id), "restoring");
  is_map();
  EXPECT_GT(lease.held->slabs.size(), 0u);
}

}  // namespace
}  // namespace gmb::broker
