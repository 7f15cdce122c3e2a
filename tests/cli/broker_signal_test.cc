#include "client/cli/upgrade/broker_signal.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

// As the later one of two `gmb upgrade` at once finds it.
TEST(BrokerSignalTest, OfABrokerThatHasEndedItSaysWhatToDo) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  internal::BrokerProcess broker;
  broker.pid = child;
  broker.pidfd =
      base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(broker.pidfd.valid());
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string said(Tell(broker, SIGUSR2).message());
  EXPECT_THAT(said, HasSubstr("has ended meanwhile"));
  EXPECT_THAT(said, HasSubstr("gmb status --wait"));
}

}  // namespace
}  // namespace gmb::cli
