// The words of the other side, as a status that a user reads.
#include "proto/error_status.h"

#include "gtest/gtest.h"

namespace gmb::proto {
namespace {

TEST(ErrorStatusTest, AnErrorComesAcrossWithItsDetail) {
  const absl::Status sent =
      MakeError(v1::TENANT_LIMIT, "at its limit", {.deficit_bytes = 7});
  for (const absl::Status& came :
       {FromWireError(ToWireError(sent)), FromGrpcStatus(ToGrpcStatus(sent))}) {
    EXPECT_EQ(came.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(came.message(), "at its limit");
    ASSERT_TRUE(GetErrorDetail(came).has_value());
    EXPECT_EQ(GetErrorDetail(came)->reason(), v1::TENANT_LIMIT);
    EXPECT_EQ(GetErrorDetail(came)->deficit_bytes(), 7U);
  }
}

TEST(ErrorStatusTest, OneWithoutAMessageSaysThatNoneWasGiven) {
  EXPECT_FALSE(FromWireError(v1::Error()).ok());
  EXPECT_EQ(FromWireError(v1::Error()).message(),
            "the broker refuses, and does not say why");
  EXPECT_EQ(
      FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "")).message(),
      "the broker refuses, and does not say why");
}

TEST(ErrorStatusTest, ACodeThatNobodyKnowsIsNoSuccess) {
  v1::Error error;
  for (const int code : {0, -1, 17, 1'000'000}) {
    error.set_code(code);
    EXPECT_EQ(FromWireError(error).code(), absl::StatusCode::kUnknown) << code;
  }
}

}  // namespace
}  // namespace gmb::proto
