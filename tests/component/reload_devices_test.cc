// Values for one device, of the file and of operators, over reloads of the real
// broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/component/reload_fixture.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using ReloadDevicesTest = ReloadTest;

TEST_F(ReloadDevicesTest, WhatAnOperatorDoesNotNameOnADeviceStaysTheFiles) {
  Write("tenants:\n- {name: a, guarantee: 10%}\n");
  Start();
  Run({"tenant", "set", "a", "--device", "host-0", "--limit", "50%"});
  Reload("tenants:\n- {name: a, guarantee: 30%}\n", "reloaded");
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("30% ="), HasSubstr("50% ="),
                                 Not(HasSubstr("host-0/guarantee"))));
  Start();
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("30% ="), HasSubstr("50% =")));
}

// The file says more of the device than there was before.
TEST_F(ReloadDevicesTest, AnUndoOfADevicesValueIsStoredAndAudited) {
  Write("tenants:\n- {name: a}\n");
  Start();
  Reload("tenants:\n- {name: a, devices: {host-0: {limit: 25%}}}\n",
         "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("25% ="));
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("100% ="));
  EXPECT_THAT(Run({"audit", "--limit", "1"}),
              AllOf(HasSubstr("set_tenant"), HasSubstr("25% -> 100%")));
  Reload();
  EXPECT_THAT(Tenant("a"), Not(HasSubstr("25% =")));
  Start();
  EXPECT_THAT(Tenant("a"), Not(HasSubstr("25% =")));
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("25% ="));
}

}  // namespace
}  // namespace gmb
