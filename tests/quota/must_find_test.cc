#include "quota/must_find.h"

#include <gtest/gtest.h>

#include "absl/container/flat_hash_map.h"
#include "quota/units.h"

namespace gmb::quota {
namespace {

TEST(MustFindTest, AnEntryThatIsThereCanBeChanged) {
  absl::flat_hash_map<LeaseId, int> leases = {{LeaseId{7}, 1}};
  MustFind(leases, LeaseId{7}, "lease") = 2;
  EXPECT_EQ(leases[LeaseId{7}], 2);
}

TEST(MustFindDeathTest, TheLastWordsNameTheEntryAndThePlace) {
  const absl::flat_hash_map<LeaseId, int> leases;
  EXPECT_DEATH((void)MustFind(leases, LeaseId{7}, "lease"),
               "name a lease that is not there: id=7 .*must_find_test.cc:");
}

}  // namespace
}  // namespace gmb::quota
