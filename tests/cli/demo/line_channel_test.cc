#include "client/cli/demo/line_channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

TEST(LineChannelTest, LinesArriveWholeAndInOrder) {
  absl::StatusOr<ChannelPair> pair = LineChannel::Pair();
  ASSERT_TRUE(pair.ok());
  ASSERT_TRUE(pair->ours.Send("one").ok());
  ASSERT_TRUE(pair->ours.Send(std::string(20000, 'x')).ok());
  EXPECT_EQ(pair->theirs.Receive(absl::InfiniteFuture()).value(), "one");
  EXPECT_EQ(pair->theirs.Receive(absl::InfiniteFuture()).value().size(),
            20000U);
}

TEST(LineChannelTest, AfterAHangUpWhatWasSentIsReadFirst) {
  absl::StatusOr<ChannelPair> pair = LineChannel::Pair();
  ASSERT_TRUE(pair.ok());
  {
    LineChannel ours = std::move(pair->ours);
    ASSERT_TRUE(ours.Send("last words").ok());
  }
  EXPECT_EQ(pair->theirs.Receive(absl::InfiniteFuture()).value(), "last words");
  EXPECT_TRUE(absl::IsUnavailable(
      pair->theirs.Receive(absl::InfiniteFuture()).status()));
  EXPECT_TRUE(absl::IsUnavailable(pair->theirs.Send("hello?")));
}

TEST(LineChannelTest, SilenceEndsAtTheDeadline) {
  absl::StatusOr<ChannelPair> pair = LineChannel::Pair();
  ASSERT_TRUE(pair.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      pair->theirs.Receive(absl::Now() + absl::Milliseconds(5)).status()));
}

TEST(LineChannelTest, AnInterruptEndsTheWait) {
  absl::StatusOr<ChannelPair> pair = LineChannel::Pair();
  ASSERT_TRUE(pair.ok());
  const int interrupt = eventfd(1, EFD_CLOEXEC);
  ASSERT_GE(interrupt, 0);
  EXPECT_TRUE(absl::IsCancelled(
      pair->theirs.Receive(absl::InfiniteFuture(), interrupt).status()));
  close(interrupt);
}

}  // namespace
}  // namespace gmb::cli
