#include "client/cli/text/json.h"

#include "gmb/v1/admin.pb.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

TEST(JsonTest, SixtyFourBitIntegersAreNumbersAndEveryFieldIsThere) {
  v1::PoolStatus pool;
  pool.mutable_device()->set_uuid("host-0");
  pool.set_granted_bytes(uint64_t{1} << 40);
  const Json json = ToJson(pool);
  EXPECT_EQ(json["granted_bytes"], uint64_t{1} << 40);
  EXPECT_EQ(json["missing_bytes"], 0);
  EXPECT_EQ(json["draining"], false);
  EXPECT_EQ(json["device"]["uuid"], "host-0");
  EXPECT_EQ(json["device"]["kind"], "UNSPECIFIED");
}

TEST(JsonTest, AnAmountHasTheOneMemberThatIsSet) {
  v1::Quota quota;
  quota.mutable_guarantee()->set_fraction(0.25);
  EXPECT_EQ(LineJson(ToJson(quota)),
            R"({"guarantee":{"fraction":0.25},"limit":null,"weight":0.0})");
}

TEST(JsonTest, TimesAreTextAndDurationsAreSeconds) {
  v1::Event event;
  event.mutable_at()->set_seconds(1777906000);
  event.mutable_at()->set_nanos(500'000'000);
  event.mutable_took()->set_nanos(1'500'000);
  const Json json = ToJson(event);
  EXPECT_EQ(json["at"], "2026-05-04T14:46:40.5Z");
  EXPECT_DOUBLE_EQ(json["took"].get<double>(), 0.0015);
  EXPECT_TRUE(ToJson(v1::Event())["at"].is_null());
}

TEST(JsonTest, AnEnumOfANewerBrokerIsItsNumber) {
  v1::DeviceInfo device;
  device.set_kind(static_cast<v1::DeviceKind>(99));
  EXPECT_EQ(ToJson(device)["kind"], 99);
}

TEST(JsonTest, AListOfMessagesIsAListOfObjects) {
  v1::ListLeasesResponse leases;
  leases.add_leases()->set_id(7);
  EXPECT_EQ(ToJson(leases)["leases"][0]["id"], 7);
  EXPECT_TRUE(ToJson(v1::ListLeasesResponse())["leases"].empty());
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplacedAndDoNotThrow) {
  EXPECT_FALSE(LineJson(Json{{"name", "\xff\xfe"}}).empty());
}

TEST(JsonTest, AnErrorOfTheTransportHasNoReason) {
  const Json json = ErrorToJson(absl::UnavailableError("nobody there"));
  EXPECT_EQ(json["error"]["code"], "UNAVAILABLE");
  EXPECT_FALSE(json["error"].contains("reason"));
}

}  // namespace
}  // namespace gmb::cli
