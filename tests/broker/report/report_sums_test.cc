// Sums over more sessions than one slice may look at.
#include <string>

#include "absl/strings/str_cat.h"
#include "broker/report/sums.h"
#include "gtest/gtest.h"
#include "tests/broker/report/large_machine.h"

namespace gmb::broker {
namespace {

TEST(ReportSumsTest, ASliceStopsAndTheNextGoesOnFromThere) {
  LargeMachine machine(100 * LargeMachine::kGranule);
  constexpr uint64_t kEach = 1'500;
  for (const char* tenant : {"a", "b"}) {
    machine.SetTenant(tenant);
    for (uint64_t i = 0; i < kEach; ++i) machine.Connect(tenant);
  }
  report::SessionStates states;
  report::Page page;
  report::CountSessions(machine.state(), machine.now(), &page, &states);
  EXPECT_TRUE(page.more);
  uint64_t counted = 0;
  for (const auto& [id, row] : states.by_tenant)
    counted += row.sessions[v1::SessionInfo::GATE_OFF];
  EXPECT_EQ(counted, report::kLooksASlice);
  while (page.more)
    report::CountSessions(machine.state(), machine.now(), &page, &states);
  ASSERT_EQ(states.by_tenant.size(), 2U);
  for (const auto& [id, row] : states.by_tenant) {
    EXPECT_EQ(row.sessions[v1::SessionInfo::GATE_OFF], kEach) << row.tenant;
    EXPECT_TRUE(row.tenant == "a" || row.tenant == "b");
  }
}

TEST(ReportSumsTest, WhatHasNoCopyIsNotBacked) {
  LargeMachine machine(3'000 * LargeMachine::kGranule);
  machine.SetTenant("a");
  const uint64_t session = machine.Connect("a");
  for (int i = 0; i < 2'500; ++i) machine.Acquire(session);
  report::BackedSums sums;
  int slices = 0;
  for (report::Page page; page.more; ++slices)
    report::SumBacked(machine.state(), &page, &sums);
  EXPECT_EQ(slices, 2);
  EXPECT_TRUE(sums.bytes.empty());
}

}  // namespace
}  // namespace gmb::broker
