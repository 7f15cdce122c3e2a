#include "quota/pending_guarantees.h"

#include <gtest/gtest.h>

#include <vector>

namespace gmb::quota {
namespace {

Account Asking(uint64_t tenant) {
  Account account;
  account.tenant = TenantId{tenant};
  account.requested.guarantee_bytes = 10;
  return account;
}

std::vector<TenantId> InOrder(const PendingGuarantees& pending) {
  std::vector<TenantId> tenants;
  for (const auto& [place, tenant] : pending.places()) {
    tenants.push_back(tenant);
  }
  return tenants;
}

TEST(PendingGuaranteesTest, KeepsTheOrderInWhichTheyAsked) {
  PendingGuarantees pending;
  Account second = Asking(2), first = Asking(1);
  pending.Update(second);
  pending.Update(first);
  second.effective_bytes = 9;
  pending.Update(second);  // more, and not all
  EXPECT_EQ(InOrder(pending), (std::vector{TenantId{2}, TenantId{1}}));
}

TEST(PendingGuaranteesTest, OneThatIsInForceLeavesAndComesBackBehindOthers) {
  PendingGuarantees pending;
  Account second = Asking(2), first = Asking(1);
  pending.Update(second);
  pending.Update(first);
  second.effective_bytes = 10;
  pending.Update(second);
  EXPECT_EQ(second.pending_place, 0);
  EXPECT_EQ(InOrder(pending), std::vector{TenantId{1}});
  second.effective_bytes = 0;
  pending.Update(second);
  EXPECT_EQ(InOrder(pending), (std::vector{TenantId{1}, TenantId{2}}));
  pending.Leave(first);
  pending.Leave(first);  // has no place any more
  EXPECT_EQ(InOrder(pending), std::vector{TenantId{2}});
}

TEST(TotalsTest, TakeBackAllThatAnAccountAdded) {
  Account account = Asking(1);
  account.effective_bytes = 4;
  account.leased_bytes = 30;
  account.evicted_bytes = 8;
  account.soft_bytes = 5;
  account.unreturned_bytes = 2;
  account.leases = 3;
  account.handles = 6;
  Totals totals;
  totals.Add(account);
  EXPECT_EQ(totals.ResidentBytes(), 24);
  EXPECT_EQ(totals.committed_bytes, 19) << "hard bytes, above the guarantee";
  EXPECT_EQ(totals.lent_bytes, 5);
  EXPECT_EQ(totals.uncovered, 1);
  totals.Take(account);
  EXPECT_EQ(totals.ResidentBytes(), 0);
  EXPECT_EQ(totals.committed_bytes, 0);
  EXPECT_EQ(totals.leases + totals.handles + totals.uncovered, 0);
}

}  // namespace
}  // namespace gmb::quota
