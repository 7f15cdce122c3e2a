#include "broker/gateway/tenant_paces.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr TenantPaces::Time kBegin{std::chrono::hours(1)};
constexpr TenantPaces::Options kOptions{.connects_at_once = 4,
                                        .connects_a_second = 1,
                                        .calls_a_connect = 2,
                                        .connects_a_breach = 3,
                                        .calls_at_once = 4,
                                        .calls_a_second = 1};

int ConnectsNow(TenantPaces* paces, const std::string& tenant,
                TenantPaces::Time now) {
  int connects = 0;
  while (paces->TakeConnect(tenant, now)) ++connects;
  return connects;
}

TEST(TenantPacesTest, EachTenantHasItsOwn) {
  TenantPaces paces(kOptions);
  EXPECT_EQ(ConnectsNow(&paces, "a", kBegin), 4);
  EXPECT_EQ(ConnectsNow(&paces, "b", kBegin), 4);
  EXPECT_EQ(ConnectsNow(&paces, "a", kBegin + seconds(2)), 2);
  EXPECT_EQ(paces.CallsOf("a", kBegin), paces.CallsOf("a", kBegin));
  EXPECT_NE(paces.CallsOf("a", kBegin), paces.CallsOf("b", kBegin));
}

TEST(TenantPacesTest, CallsAndBreachesCountAsConnects) {
  TenantPaces paces(kOptions);
  paces.CountEnd("a", 5, /*breach=*/false, kBegin);
  EXPECT_EQ(ConnectsNow(&paces, "a", kBegin), 2);
  paces.CountEnd("b", 0, /*breach=*/true, kBegin);
  EXPECT_EQ(ConnectsNow(&paces, "b", kBegin), 1);
}

TEST(TenantPacesTest, TenantsThatComeAndGoAreForgotten) {
  TenantPaces paces(kOptions);
  for (int i = 0; i < 100'000; ++i) {
    const auto now = kBegin + i * std::chrono::milliseconds(100);
    const std::string tenant = std::to_string(i);
    EXPECT_TRUE(paces.TakeConnect(tenant, now));
    paces.CallsOf(tenant, now)->Count(2, now);
    paces.CountEnd(tenant, 2, /*breach=*/false, now);
  }
  EXPECT_LE(paces.tenants(), 2 * TenantPaces::kFirstForgotten);
}

TEST(TenantPacesTest, WhatIsNotMadeGoodYetIsRemembered) {
  TenantPaces paces(kOptions);
  EXPECT_EQ(ConnectsNow(&paces, "connects", kBegin), 4);
  paces.CallsOf("calls", kBegin)->Count(4, kBegin);
  const std::shared_ptr<CallPace> open = paces.CallsOf("open", kBegin);
  for (int i = 0; i < 1000; ++i)
    (void)paces.CallsOf(std::to_string(i), kBegin + seconds(3));
  EXPECT_LE(paces.tenants(), 2 * TenantPaces::kFirstForgotten);
  EXPECT_EQ(ConnectsNow(&paces, "connects", kBegin + seconds(3)), 3);
  EXPECT_FALSE(
      paces.CallsOf("calls", kBegin + seconds(3))->AtRest(kBegin + seconds(3)));
  // All connections of a tenant have one pace.
  EXPECT_EQ(paces.CallsOf("open", kBegin + seconds(3)), open);
}

}  // namespace
}  // namespace gmb::broker
