#include "client/cli/tenant_token.h"

#include <fstream>

#include "client/cli/demo/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::string> TokenIn(const std::string& contents) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  const std::string path = dir->path() + "/token";
  std::ofstream(path, std::ios::binary) << contents;
  return ReadTenantToken(path);
}

TEST(TenantTokenTest, ItIsTheFileWithoutTheNewlinesAtItsEnd) {
  EXPECT_EQ(TokenIn("0123456789abcdef\r\n\n").value(), "0123456789abcdef");
  EXPECT_EQ(TokenIn(std::string(256, 'x')).value(), std::string(256, 'x'));
}

TEST(TenantTokenTest, AFileWithoutATokenIsRefusedAndNotShown) {
  for (const std::string& contents :
       {std::string(), std::string("\n"), std::string("short-secret"),
        std::string(257, 'x'), std::string(10'000, 'x')}) {
    const absl::Status status = TokenIn(contents).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << contents.size();
    EXPECT_THAT(std::string(status.message()), HasSubstr("/token"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("short-secret")));
  }
}

TEST(TenantTokenTest, AFileThatCannotBeReadIsNamedWithTheReason) {
  EXPECT_THAT(std::string(ReadTenantToken("/nonexistent").status().message()),
              HasSubstr("No such file"));
  EXPECT_FALSE(ReadTenantToken("/").ok());
}

}  // namespace
}  // namespace gmb::cli
