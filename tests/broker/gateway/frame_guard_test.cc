#include "broker/gateway/frame_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/broker/gateway/frames.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using F = FrameHeader;

constexpr FrameGuard::Time kStart{std::chrono::hours(1)};

class FrameGuardTest : public ::testing::Test {
 protected:
  FrameGuardTest() { EXPECT_TRUE(Send(kPreface).ok()); }

  absl::Status Send(const std::string& bytes) {
    return guard_.OnClientBytes(bytes, now_);
  }
  // How many of them pass, of `most`.
  int SendMany(const std::string& frame, int most) {
    for (int i = 0; i < most; ++i) {
      last_ = Send(frame);
      if (!last_.ok()) return i;
    }
    return most;
  }
  void Pass(std::chrono::milliseconds time) { now_ += time; }
  // A new connection: the last one has broken a bound.
  void ConnectAnew() {
    guard_ = FrameGuard();
    EXPECT_TRUE(Send(kPreface).ok());
  }

  FrameGuard guard_;
  FrameGuard::Time now_ = kStart;
  absl::Status last_;
};

TEST_F(FrameGuardTest, AnHonestConversationPasses) {
  EXPECT_TRUE(Send(Frame(F::kSettings, 0, 0, 36)).ok());
  EXPECT_TRUE(Send(Frame(F::kWindowUpdate, 0, 0, 4)).ok());
  EXPECT_TRUE(Send(Frame(F::kSettings, 1, 0, 0)).ok());
  EXPECT_TRUE(Send(Headers(1, 400)).ok());
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(Send(Frame(F::kData, 0, 1, 30)).ok());
    guard_.OnServerBytes(Frame(F::kData, 0, 1, 30));
    // As clients do that estimate the bandwidth with every message.
    ASSERT_TRUE(Send(Frame(F::kPing, 0, 0, 8)).ok()) << i;
    ASSERT_TRUE(Send(Frame(F::kWindowUpdate, 0, 0, 4)).ok()) << i;
    ASSERT_TRUE(Send(Frame(F::kWindowUpdate, 0, 1, 4)).ok()) << i;
  }
  EXPECT_TRUE(Send(Frame(F::kGoAway, 0, 0, 8)).ok());
}

TEST_F(FrameGuardTest, OtherProtocolsDoNotPass) {
  FrameGuard other;
  EXPECT_TRUE(other.OnClientBytes("PRI * HT", kStart).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(other.OnClientBytes("XP/2.0", kStart)));
  EXPECT_TRUE(absl::IsInvalidArgument(
      FrameGuard().OnClientBytes("GET / HTTP/1.1\r\n", kStart)));
}

TEST_F(FrameGuardTest, AFrameIsNotLargerThanHttp2Allows) {
  EXPECT_TRUE(Send(Frame(F::kData, 0, 1, 16'384)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Send(Frame(F::kData, 0, 1, 16'385))));
}

TEST_F(FrameGuardTest, AHeaderBlockHasItsMostBytesAndPieces) {
  EXPECT_TRUE(Send(Frame(F::kHeaders, 0, 1, 16'000)).ok());
  EXPECT_TRUE(Send(Frame(F::kContinuation, F::kEndHeaders, 1, 384)).ok());
  EXPECT_TRUE(Send(Frame(F::kHeaders, 0, 3, 16'000)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      Send(Frame(F::kContinuation, F::kEndHeaders, 3, 385))));
}

TEST_F(FrameGuardTest, EmptyContinuationsDoNotGoOnForEver) {
  EXPECT_TRUE(Send(Frame(F::kHeaders, 0, 1, 10)).ok());
  EXPECT_EQ(SendMany(Frame(F::kContinuation, 0, 1, 0), 1000), 16);
  EXPECT_TRUE(absl::IsResourceExhausted(last_)) << last_;
}

TEST_F(FrameGuardTest, AHeaderBlockIsNotBrokenOff) {
  EXPECT_TRUE(Send(Frame(F::kHeaders, 0, 1, 10)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Send(Frame(F::kPing, 0, 0, 8))));
  ConnectAnew();
  EXPECT_TRUE(Send(Frame(F::kHeaders, 0, 1, 10)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      Send(Frame(F::kContinuation, F::kEndHeaders, 3, 8))));
}

TEST_F(FrameGuardTest, AContinuationNeedsABlock) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Send(Frame(F::kContinuation, F::kEndHeaders, 1, 8))));
  ConnectAnew();
  EXPECT_TRUE(absl::IsInvalidArgument(Send(Headers(0))));
}

TEST_F(FrameGuardTest, SoManyStreamsAreOpenAtOnce) {
  for (uint32_t i = 0; i < 64; ++i) ASSERT_TRUE(Send(Headers(2 * i + 1)).ok());
  EXPECT_EQ(guard_.open_streams(), 64U);
  // gRPC ends one by its trailers, one by a reset; the client resets one.
  guard_.OnServerBytes(Headers(1) + Frame(F::kHeaders, 0x5, 1, 20));
  guard_.OnServerBytes(Frame(F::kRstStream, 0, 3, 4));
  EXPECT_TRUE(Send(Frame(F::kRstStream, 0, 5, 4)).ok());
  EXPECT_EQ(guard_.open_streams(), 61U);
  for (uint32_t i = 64; i < 67; ++i) ASSERT_TRUE(Send(Headers(2 * i + 1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Send(Headers(201))));
}

TEST_F(FrameGuardTest, CallsHaveARate) {
  uint32_t stream = 1;
  const auto calls = [&](int most) {
    int made = 0;
    while (made < most && (last_ = Send(Headers(stream))).ok()) {
      guard_.OnServerBytes(Frame(F::kHeaders, 0x5, stream, 20));
      stream += 2;
      ++made;
    }
    return made;
  };
  EXPECT_EQ(calls(80), 80);
  Pass(std::chrono::seconds(1));
  EXPECT_EQ(calls(10'000), 20);
  EXPECT_TRUE(absl::IsResourceExhausted(last_)) << last_;
}

TEST_F(FrameGuardTest, RapidResetsHaveARate) {
  int calls = 0;
  for (uint32_t stream = 1;
       Send(Headers(stream) + Frame(F::kRstStream, 0, stream, 4)).ok();
       stream += 2) {
    ASSERT_LT(++calls, 10'000);
  }
  EXPECT_LE(calls, 80);
}

TEST_F(FrameGuardTest, FramesThatCarryNothingHaveARate) {
  const std::vector<std::pair<std::string, int>> most = {
      {Frame(F::kPing, 0, 0, 8), 100},
      {Frame(F::kSettings, 0, 0, 6), 32},
      {Frame(F::kRstStream, 0, 1, 4), 80},
      {Frame(F::kWindowUpdate, 0, 1, 4), 10'000},
      {Frame(F::kPriority, 0, 1, 5), 128},
      {Frame(F::kData, 0, 1, 0), 128},
      {Frame(F::kData, 0, 1, 3), 2000},
      {Frame(0xf0, 0, 1, 5), 128}};
  for (const auto& [frame, passes] : most) {
    ConnectAnew();
    EXPECT_EQ(SendMany(frame, 100'000), passes) << int{frame[3]};
    EXPECT_THAT(std::string(last_.message()), HasSubstr("too fast"));
  }
}

TEST_F(FrameGuardTest, AFrameDoesNotComeByteForByteForEver) {
  EXPECT_TRUE(Send(Frame(F::kData, 0, 1, 16'000).substr(0, 9)).ok());
  EXPECT_EQ(SendMany("x", 10'000), 1999);
  EXPECT_THAT(std::string(last_.message()), HasSubstr("too fast"));
  // Larger pieces, and small frames as a whole, may come as often as they like.
  ConnectAnew();
  EXPECT_TRUE(Send(Frame(F::kData, 0, 1, 16'000).substr(0, 9)).ok());
  EXPECT_EQ(SendMany(std::string(64, 'x'), 250), 250);
  EXPECT_EQ(SendMany(Frame(F::kData, 0, 1, 20), 10'000), 10'000);
}

// A client whose window is enlarged in small steps cuts its messages, and goes
// on as long as they are answered.
TEST_F(FrameGuardTest, EachAnswerEarnsOneShortFrame) {
  const std::string piece = Frame(F::kData, 0, 1, 3);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(Send(piece).ok()) << i;
    guard_.OnServerBytes(Frame(F::kData, 0, 1, 30));
  }
  EXPECT_EQ(SendMany(piece, 100'000), 2000) << "saves up no more than at first";
}

TEST_F(FrameGuardTest, WhatAClientSendsEarnsItNothing) {
  const std::string message = Frame(F::kData, 0, 1, 30);
  EXPECT_EQ(SendMany(message + Frame(F::kPing, 0, 0, 8), 10'000), 100);
  ConnectAnew();
  EXPECT_EQ(SendMany(message + Frame(F::kWindowUpdate, 0, 1, 4), 100'000),
            10'000);
}

}  // namespace
}  // namespace gmb::broker
