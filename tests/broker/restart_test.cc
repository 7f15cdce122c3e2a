#include "broker/config/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "broker/config/config.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Restart : public testing::Test {
 protected:
  BrokerConfig Read(const std::string& text, const Flags& more = {}) const {
    std::ofstream(directory_ / "gmb.yaml") << text;
    Flags flags = more;
    flags.config_file = directory_ / "gmb.yaml";
    const auto config = LoadConfig(flags);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(BrokerConfig());
  }
  const broker::TempDirectory directory_;
};

TEST_F(Restart, SettingsAndDevicesThatDifferAreNamedWithBothValues) {
  const BrokerConfig running =
      Read("devices: ['host:64MiB']\nmax_sessions: 10\n");
  const BrokerConfig next =
      Read("devices: ['host:128MiB']\nsocket_dir: /run/x\n");
  EXPECT_THAT(
      NeedRestart(running, next),
      ElementsAre("devices host:64.0 MiB -> host:128.0 MiB",
                  "socket_dir /run/gmb -> /run/x", "max_sessions 10 -> 1024"));
}

TEST_F(Restart, TheSameValueWrittenInAnotherWayIsNoDifference) {
  EXPECT_THAT(
      NeedRestart(
          Read("devices: ['host:64MiB']\nheadroom: 6GiB\npause: true\n"),
          Read("devices: ['host:65536KiB']\nheadroom: 6144MiB\n")),
      IsEmpty());
}

TEST_F(Restart, WhatAReloadChangesByItselfIsLeftOut) {
  EXPECT_THAT(
      NeedRestart(Read("devices: ['host:64MiB']\n"),
                  Read("devices: ['host:64MiB']\nreload_may_reclaim: 1GiB\n"
                       "drain_deadline: 5s\ntenants:\n- {name: a}\n")),
      IsEmpty());
}

TEST_F(Restart, WhereAFlagWinsTheFileChangesNothing) {
  Flags flags;
  flags.settings["max_sessions"] = "5";
  flags.devices = {"host:64MiB"};
  EXPECT_THAT(NeedRestart(Read("max_sessions: 10\n", flags),
                          Read("max_sessions: 20\n", flags)),
              IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
