#include "broker/daemon/start_advice.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StartAdviceTest, WantOfRightsAndFilesSaysWhatToDo) {
  const auto advice = [](int error) {
    return WithAdvice(
        absl::ErrnoToStatus(error, "cannot make the directory /x"));
  };
  EXPECT_THAT(advice(EACCES), AllOf(HasSubstr("cannot make the directory /x"),
                                    HasSubstr("--state-dir")));
  EXPECT_THAT(advice(EPERM), HasSubstr("run gmbd as a user"));
  EXPECT_THAT(advice(EROFS), HasSubstr("--socket-dir"));
  EXPECT_THAT(advice(EMFILE), HasSubstr("LimitNOFILE="));
  EXPECT_THAT(advice(ENFILE), HasSubstr("fs.file-max"));
  EXPECT_EQ(WithAdvice(absl::FailedPreconditionError("remove it")),
            "remove it");
}

}  // namespace
}  // namespace gmb::broker
