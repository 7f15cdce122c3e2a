#include "broker/machine/room_look.h"

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"
#include "quota/units.h"

namespace gmb::broker {
namespace {

class RoomLookTest : public testing::Test {
 protected:
  void Wait(std::initializer_list<uint64_t> ids) {
    for (const uint64_t id : ids) waiting_[quota::RequestId{id}];
  }
  void End(uint64_t id) { waiting_.erase(quota::RequestId{id}); }
  // 0: the look is over.
  uint64_t Next() {
    return look_.Next(waiting_).value_or(quota::RequestId{}).value;
  }
  std::vector<uint64_t> Rest() {
    std::vector<uint64_t> ids;
    while (const uint64_t id = Next()) ids.push_back(id);
    return ids;
  }

  RoomLook look_;
  RoomLook::Requests waiting_;
};

TEST_F(RoomLookTest, AllAreLookedAtOnce) {
  Wait({3, 5, 9});
  EXPECT_EQ(Next(), 0u) << "there is no look";
  look_.Begin();
  EXPECT_EQ(Rest(), (std::vector<uint64_t>{3, 5, 9}));
  EXPECT_FALSE(look_.under_way());
  look_.Begin();
  EXPECT_EQ(Rest(), (std::vector<uint64_t>{3, 5, 9}));
}

TEST_F(RoomLookTest, WhereNobodyWaitsItIsOver) {
  look_.Begin();
  EXPECT_EQ(Next(), 0u);
  EXPECT_FALSE(look_.under_way());
}

TEST_F(RoomLookTest, WhatComesMeanwhileTakesNobodysTurn) {
  Wait({1, 2, 3, 4});
  look_.Begin();
  EXPECT_EQ(Next(), 1u);
  EXPECT_EQ(Next(), 2u);
  look_.Begin();  // there is room once more
  Wait({5, 6, 7});
  EXPECT_EQ(Rest(), (std::vector<uint64_t>{3, 4, 5, 6, 7, 1, 2}));
}

TEST_F(RoomLookTest, NewsInTheSecondRoundBeginItOnceMore) {
  Wait({1, 2, 3});
  look_.Begin();
  EXPECT_EQ(Next(), 1u);
  EXPECT_EQ(Next(), 2u);
  look_.Begin();
  EXPECT_EQ(Next(), 3u);
  EXPECT_EQ(Next(), 1u);
  look_.Begin();
  EXPECT_EQ(Rest(), (std::vector<uint64_t>{2, 3, 1}));
}

TEST_F(RoomLookTest, OneThatIsAnsweredMeanwhileIsLeftOut) {
  Wait({1, 2, 3});
  look_.Begin();
  EXPECT_EQ(Next(), 1u);
  End(2);
  EXPECT_EQ(Rest(), (std::vector<uint64_t>{3}));
}

TEST_F(RoomLookTest, RoomIsNewsOnce) {
  EXPECT_FALSE(look_.IsNews(0));
  EXPECT_TRUE(look_.IsNews(2));
  look_.Notice(2);
  EXPECT_TRUE(look_.under_way());
  EXPECT_FALSE(look_.IsNews(2));
  Rest();
  look_.Notice(2);
  EXPECT_FALSE(look_.under_way());
}

}  // namespace
}  // namespace gmb::broker
