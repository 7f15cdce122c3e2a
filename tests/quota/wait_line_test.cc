#include "quota/wait_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace gmb::quota {
namespace {

constexpr Standing kStanding = {.guarantee_left_bytes = 10,
                                .limit_left_bytes = 40,
                                .restore_left_bytes = 60,
                                .hard_room_bytes = 15};

WaitLine::Waiter At(uint64_t place) {
  return {.place = place, .request = RequestId{100 + place}};
}

// Four requests: above the limit, borrowing and hard, a Restore, and one within
// the guarantee.
WaitLine FourThatWait() {
  WaitLine line;
  line.SetStanding(kStanding);
  line.Add(At(1), {.bytes = 50, .hard = true});
  line.Add(At(2), {.bytes = 20, .hard = true});
  line.Add(At(3), {.bytes = 50, .hard = false, .restore = true});
  line.Add(At(4), {.bytes = 10, .hard = false});
  return line;
}

uint64_t PlaceOf(const WaitLine::Waiter* waiter) {
  return waiter == nullptr ? 0 : waiter->place;
}

TEST(WaitLineTest, PassesOverWhatTheLimitHoldsBack) {
  const WaitLine line = FourThatWait();
  EXPECT_EQ(PlaceOf(line.Front()), 2);
  EXPECT_EQ(line.OldestPlace(), 1);
  EXPECT_EQ(line.size(), 4);
  EXPECT_EQ(line.bytes(), 130);
}

TEST(WaitLineTest, TellsBorrowersFromThoseWithinTheGuarantee) {
  WaitLine line = FourThatWait();
  EXPECT_EQ(PlaceOf(line.BorrowingFront()), 2);
  EXPECT_EQ(PlaceOf(line.FrontWithin(10)), 4);
  EXPECT_EQ(PlaceOf(line.FrontWithin(9)), 0);
  EXPECT_TRUE(line.AnyWithinGuarantee());
  line.Remove(4, 10);
  EXPECT_FALSE(line.AnyWithinGuarantee());
}

TEST(WaitLineTest, TheHardRoomCoversHardBytes) {
  const WaitLine line = FourThatWait();
  EXPECT_EQ(line.NeedOf(At(2)).beyond_bytes, 5);
  EXPECT_EQ(line.NeedOf(At(3)).beyond_bytes, 0) << "it is soft";
  EXPECT_EQ(PlaceOf(line.FrontFitting(50, 5)), 2);
  EXPECT_EQ(PlaceOf(line.FrontFitting(50, 4)), 3);
  EXPECT_EQ(PlaceOf(line.FrontFitting(49, 4)), 4);
  EXPECT_EQ(line.LeastBytes(), 10);
  EXPECT_EQ(line.MostBytes(), 50);
  EXPECT_EQ(line.MostHardBytes(), 50);
}

TEST(WaitLineTest, OneThatLacksBytesElsewhereIsPassedOverUntilItDoesNot) {
  WaitLine line = FourThatWait();
  line.SetLackingElsewhere(2, true);
  EXPECT_EQ(PlaceOf(line.FrontFitting(50, 5)), 3);
  line.SetLackingElsewhere(2, false);
  EXPECT_EQ(PlaceOf(line.FrontFitting(50, 5)), 2);
}

TEST(WaitLineTest, ForgetsUntilWhenOneMayBePassedWithTheRequest) {
  WaitLine line = FourThatWait();
  EXPECT_EQ(line.PassableUntil(2), Instant::Max());
  line.SetPassableUntil(2, Instant{7});
  EXPECT_EQ(line.PassableUntil(2), Instant{7});
  line.Remove(2, 20);
  EXPECT_EQ(line.PassableUntil(2), Instant::Max());
}

TEST(WaitLineTest, TheGuaranteeCoversRequestsTogether) {
  WaitLine line;
  line.SetStanding(kStanding);
  line.Add(At(1), {.bytes = 6});
  line.Add(At(2), {.bytes = 6});
  line.Add(At(3), {.bytes = 4});
  std::vector<uint64_t> covered;
  const auto note = [&](const WaitLine::Waiter& waiter, uint64_t) {
    covered.push_back(waiter.place);
    return true;
  };
  EXPECT_FALSE(line.StopsWithinGuarantee(note));
  EXPECT_EQ(covered, (std::vector<uint64_t>{1, 3}));
}

}  // namespace
}  // namespace gmb::quota
