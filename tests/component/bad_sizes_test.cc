// Sizes that no lease can have, through the library and through the command.
#include <limits>
#include <string>
#include <vector>

#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

class BadSizesTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    MakeTenant("b");
    before_ = Settle();
  }
  void TearDown() override {
    ExpectServed("b");
    ExpectBackTo(before_);
    ComponentTest::TearDown();
  }

  ErrorDetail Refused(uint64_t bytes) const {
    const auto client = ConnectAs("a");
    if (client == nullptr) return {};
    const auto lease = client->Acquire(bytes, WaitFor(absl::Seconds(30)));
    EXPECT_FALSE(lease.ok()) << bytes;
    EXPECT_TRUE(client->status().ok()) << "the session goes on";
    return GetErrorDetail(lease.status()).value_or(ErrorDetail());
  }

  Footprint before_;
};

TEST_F(BadSizesTest, NothingAndMoreThanAnyPoolAreBadRequests) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 63, kMax,
                               kMax - 2 * kMiB, (uint64_t{64} << 40) + 1}) {
    const ErrorDetail detail = Refused(bytes);
    EXPECT_EQ(detail.reason, ErrorReason::kBadRequest) << bytes;
    EXPECT_EQ(detail.field, "bytes") << bytes;
  }
}

TEST_F(BadSizesTest, AboveThePoolIsRefusedAtOnceWithTheDeficit) {
  const ErrorDetail detail = Refused(300 * kMiB);
  EXPECT_EQ(detail.reason, ErrorReason::kTenantLimit);
  EXPECT_EQ(detail.deficit_bytes, 44 * kMiB);
}

TEST_F(BadSizesTest, ASizeThatIsNoMultipleIsRoundedUpAndSaid) {
  const auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  for (const uint64_t bytes : {uint64_t{1}, 2 * kMiB - 1, 2 * kMiB}) {
    const auto lease = client->Acquire(bytes);
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(lease->size_bytes(), 2 * kMiB);
  }
  const auto lease = client->Acquire(2 * kMiB + 1);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->size_bytes(), 4 * kMiB);
  const Said said =
      Gmb({"hold", "--tenant", "a", "--bytes", "3000001", "--for", "0s"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("4.00 MiB (rounded up from 3000001 B)"));
}

TEST_F(BadSizesTest, TheCommandRefusesThemWithTheSameCodes) {
  const auto hold = [this](const std::string& bytes) {
    return Gmb({"hold", "--tenant", "a", "--bytes=" + bytes, "--for", "0s"});
  };
  EXPECT_THAT(hold("-1").err, HasSubstr("a size cannot be negative"));
  for (const std::string bytes :
       {"-1", "-2GiB", "18446744073709551616", "17EiB", "1e9", "nan", "0x10",
        "", "2 parsecs"}) {
    EXPECT_EQ(hold(bytes).exit_code, 2) << bytes;
  }
  for (const std::string bytes :
       {"0", "9223372036854775808", "18446744073709551615", "65TiB"}) {
    const Said said = hold(bytes);
    EXPECT_EQ(said.exit_code, 1) << bytes;
    EXPECT_THAT(said.err, AllOf(HasSubstr("BAD_REQUEST"), HasSubstr("bytes")));
  }
  EXPECT_THAT(hold("257MiB").err, HasSubstr("TENANT_LIMIT"));
}

}  // namespace
}  // namespace gmb::component
