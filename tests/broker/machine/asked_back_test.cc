// Which shared leases a Restore was the last to ask for.
#include "broker/machine/asked_back.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using quota::LeaseId;
using quota::RequestId;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(AskedBackTest, ARequestHasTheLeasesThatItAskedForByTheirIds) {
  AskedBack asked;
  EXPECT_THAT(asked.By(RequestId{1}), IsEmpty());
  for (const uint64_t id : {7, 3, 5})
    asked.Move(LeaseId{id}, std::nullopt, RequestId{1});
  asked.Move(LeaseId{4}, std::nullopt, RequestId{2});
  EXPECT_THAT(asked.By(RequestId{1}),
              ElementsAre(LeaseId{3}, LeaseId{5}, LeaseId{7}));
  EXPECT_THAT(asked.By(RequestId{2}), ElementsAre(LeaseId{4}));
}

TEST(AskedBackTest, TheLastOneToAskHasIt) {
  AskedBack asked;
  asked.Move(LeaseId{3}, std::nullopt, RequestId{1});
  asked.Move(LeaseId{5}, std::nullopt, RequestId{1});
  asked.Move(LeaseId{3}, RequestId{1}, RequestId{2});
  EXPECT_THAT(asked.By(RequestId{1}), ElementsAre(LeaseId{5}));
  EXPECT_THAT(asked.By(RequestId{2}), ElementsAre(LeaseId{3}));
  asked.Move(LeaseId{5}, RequestId{1}, std::nullopt);
  EXPECT_THAT(asked.By(RequestId{1}), IsEmpty());
  // A request that asked for all of its leases and has lost them may ask again.
  asked.Move(LeaseId{5}, std::nullopt, RequestId{1});
  EXPECT_THAT(asked.By(RequestId{1}), ElementsAre(LeaseId{5}));
}

}  // namespace
}  // namespace gmb::broker
