// A snapshot as Prometheus reads it.
#include "broker/metrics/families.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"

namespace gmb::broker::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const Snapshot& snapshot) {
  return prometheus::TextSerializer().Serialize(FamiliesOf(snapshot));
}

v1::Tenant* AddTenant(Snapshot* snapshot, const std::string& name) {
  v1::Tenant& tenant = snapshot->tenants.emplace_back();
  tenant.set_name(name);
  tenant.add_pools()->mutable_view()->set_device("GPU-1");
  return &tenant;
}

TEST(FamiliesTest, TextOfOthersIsEscaped) {
  Snapshot snapshot;
  AddTenant(&snapshot, "<b>\"a\\b\n# TYPE evil\"}");
  v1::DeviceInfo* device = snapshot.status.add_pools()->mutable_device();
  device->set_uuid("GPU-1");
  device->set_name("H\"200\n\\");
  const std::string text = TextOf(snapshot);
  EXPECT_THAT(text, HasSubstr(R"(tenant="<b>\"a\\b\n# TYPE evil\"}",)"));
  EXPECT_THAT(text, HasSubstr(R"(device_name="H\"200\n\\")"));
  EXPECT_THAT(text, Not(HasSubstr("\n# TYPE evil")));
}

TEST(FamiliesTest, DeletedTenantsHaveNoSeries) {
  Snapshot snapshot;
  AddTenant(&snapshot, "here");
  for (const char* name : {"here", "gone"}) {
    snapshot.counts.tenants[name].devices["GPU-1"].granted = 3;
    snapshot.counts.tenants[name].waits.Add(0.02);
  }
  const std::string text = TextOf(snapshot);
  EXPECT_THAT(text, HasSubstr("gmb_requests_total{tenant=\"here\",device_uuid="
                              "\"GPU-1\",outcome=\"granted\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("gone")));
}

TEST(FamiliesTest, HistogramsAddUp) {
  Snapshot snapshot;
  AddTenant(&snapshot, "a");
  for (const double seconds : {0.0001, 0.0005, 0.02, 1000.0})
    snapshot.counts.tenants["a"].waits.Add(seconds);
  const std::string text = TextOf(snapshot);
  const std::string bucket = "gmb_request_wait_seconds_bucket{tenant=\"a\",le=";
  EXPECT_THAT(text, HasSubstr(bucket + "\"0.0005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"60\"} 3\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"+Inf\"} 4\n"));
  EXPECT_THAT(text,
              HasSubstr("gmb_request_wait_seconds_count{tenant=\"a\"} 4"));
}

TEST(FamiliesTest, WhatIsNotKnownIsLeftOut) {
  Snapshot snapshot;
  EXPECT_THAT(TextOf(snapshot), Not(HasSubstr("gmb_state_disk")));
  EXPECT_THAT(TextOf(snapshot), Not(HasSubstr("gmb_host_pool_part_bytes")));
  snapshot.disk = StateDisk::Reading{
      .ok = false, .at = absl::FromUnixSeconds(1'700'000'000)};
  snapshot.status.mutable_host_pool()->set_bytes(1);
  EXPECT_THAT(TextOf(snapshot), HasSubstr("gmb_state_disk_ok 0\n"));
  EXPECT_THAT(TextOf(snapshot), HasSubstr("gmb_host_pool_part_bytes"));
}

}  // namespace
}  // namespace gmb::broker::metrics
