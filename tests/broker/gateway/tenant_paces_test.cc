#include "broker/gateway/tenant_paces.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace gmb::broker {
namespace {

using std::chrono::seconds;

constexpr TenantPaces::Time kStart{std::chrono::hours(1)};
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
  EXPECT_EQ(ConnectsNow(&paces, "a", kStart), 4);
  EXPECT_EQ(ConnectsNow(&paces, "b", kStart), 4);
  EXPECT_EQ(ConnectsNow(&paces, "a", kStart + seconds(2)), 2);
  EXPECT_EQ(paces.CallsOf("a", kStart), paces.CallsOf("a", kStart));
  EXPECT_NE(paces.CallsOf("a", kStart), paces.CallsOf("b", kStart));
}

TEST(TenantPacesTest, CallsAndBreachesCountAsConnects) {
  TenantPaces paces(kOptions);
  paces.CountEnd("a", 5, /*breach=*/false, kStart);
  EXPECT_EQ(ConnectsNow(&paces, "a", kStart), 2);
  paces.CountEnd("b", 0, /*breach=*/true, kStart);
  EXPECT_EQ(ConnectsNow(&paces, "b", kStart), 1);
}

TEST(TenantPacesTest, TenantsThatComeAndGoAreForgotten) {
  TenantPaces paces(kOptions);
  for (int i = 0; i < 100'000; ++i) {
    const auto now = kStart + i * std::chrono::milliseconds(100);
    const std::string tenant = std::to_string(i);
    EXPECT_TRUE(paces.TakeConnect(tenant, now));
    paces.CallsOf(tenant, now)->Count(2, now);
    paces.CountEnd(tenant, 2, /*breach=*/false, now);
  }
  EXPECT_LE(paces.tenants(), 2 * TenantPaces::kFirstForgotten);
}

TEST(TenantPacesTest, WhatIsNotMadeGoodYetIsRemembered) {
  TenantPaces paces(kOptions);
  EXPECT_EQ(ConnectsNow(&paces, "connects", kStart), 4);
  paces.CallsOf("calls", kStart)->Count(4, kStart);
  const std::shared_ptr<CallPace> open = paces.CallsOf("open", kStart);
  for (int i = 0; i < 1000; ++i)
    (void)paces.CallsOf(std::to_string(i), kStart + seconds(3));
  EXPECT_LE(paces.tenants(), 2 * TenantPaces::kFirstForgotten);
  EXPECT_EQ(ConnectsNow(&paces, "connects", kStart + seconds(3)), 3);
  EXPECT_FALSE(
      paces.CallsOf("calls", kStart + seconds(3))->AtRest(kStart + seconds(3)));
  // All connections of a tenant have one pace.
  EXPECT_EQ(paces.CallsOf("open", kStart + seconds(3)), open);
}

}  // namespace
}  // namespace gmb::broker
