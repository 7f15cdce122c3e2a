// Text that is not UTF-8 is found in whatever field it is.
#include "proto/utf8_check.h"

#include <string>

#include "gmb/v1/session.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::proto {
namespace {

using ::testing::HasSubstr;

v1::ClientMessage AcquireOn(const std::string& device) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_device(device);
  return message;
}

TEST(Utf8CheckTest, TextOfAnyLanguageIsText) {
  for (const char* const text :
       {"", "GPU-0", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x7f",
        "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(CheckUtf8(AcquireOn(text)).ok()) << text;
  }
}

TEST(Utf8CheckTest, OtherBytesAreRefusedWithTheirPlace) {
  for (const char* const text :
       {"ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xe0\x80\x80", "ab\xed\xa0\x80",
        "ab\xf4\x90\x80\x80", "ab\x80", "ab\xf0\x9f\x98", "ab\xc3z"}) {
    const absl::Status status = CheckUtf8(AcquireOn(text));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("device is not UTF-8: its byte 3"));
  }
}

TEST(Utf8CheckTest, RepeatedMessagesAreLookedInto) {
  v1::ClientMessage message;
  v1::SetTrimmable& trimmable = *message.mutable_set_trimmable();
  trimmable.add_devices()->set_device("GPU-0");
  EXPECT_TRUE(CheckUtf8(message).ok());
  trimmable.add_devices()->set_device("\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckUtf8(message)));
}

TEST(Utf8CheckTest, BytesNeedBeNoText) {
  v1::ClientMessage message;
  message.mutable_export_lease()->set_key("\xff\xfe");
  EXPECT_TRUE(CheckUtf8(message).ok());
}

}  // namespace
}  // namespace gmb::proto
