#include "broker/daemon/broker_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;

// An operator may be making or ending a tenant while the broker ends.
TEST(BrokerSocketsTest, NothingIsOpenedOrClosedOnceTheServersEnd) {
  const TempDirectory directory;
  BrokerSockets sockets(
      *SocketDirectory::Open(directory.path() + "/s", std::nullopt));
  sockets.LeadNowhere();
  const TenantDoors doors = sockets.DoorsOfOperators();
  const FileDoors of_file = sockets.DoorsOfFile();
  for (const absl::Status& status :
       {doors.open("a"), doors.close("a"), of_file.open("a", {}),
        of_file.close("a")}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("repeat"));
  }
}

}  // namespace
}  // namespace gmb::broker
