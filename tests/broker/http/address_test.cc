// Where HTTP may be served, as it is written.
#include "broker/http/address.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

TEST(HttpAddressTest, AcceptedOnesReadBackAsTheyWereWritten) {
  for (const char* text :
       {"127.0.0.1:9469", "0.0.0.0:0", "[::1]:9469", "[::]:65535",
        "10.1.2.3:80", "unix:/run/gmb/http.sock"}) {
    const absl::StatusOr<HttpAddress> address = ParseHttpAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->Text(), text);
  }
}

TEST(HttpAddressTest, OthersAreRefusedInWords) {
  for (const char* text :
       {"", "9469", ":9469", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
        "127.0.0.1:+80", "127.0.0.1: 80", "127.0.0.1:80 ", "localhost:9469",
        "::1:9469", "[::1]9469", "[127.0.0.1]:80", "[::1:80", "300.0.0.1:80",
        "unix:", "unix:relative.sock", "on"}) {
    const absl::StatusOr<HttpAddress> address = ParseHttpAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.status().message().find("unix:/run/gmb/http.sock"),
              absl::string_view::npos)
        << text;
  }
  const std::string long_path = "unix:/" + std::string(200, 'a');
  EXPECT_FALSE(ParseHttpAddress(long_path).ok());
}

TEST(HttpAddressTest, LocalIsWhatThisMachineAloneReaches) {
  for (const char* text :
       {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "unix:/run/a"})
    EXPECT_TRUE(ParseHttpAddress(text)->IsLocal()) << text;
  for (const char* text :
       {"0.0.0.0:1", "128.0.0.1:1", "[::]:1", "[::ffff:127.0.0.1]:1"})
    EXPECT_FALSE(ParseHttpAddress(text)->IsLocal()) << text;
}

}  // namespace
}  // namespace gmb::broker
