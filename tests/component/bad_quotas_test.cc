// Mistakes of an operator: in quotas, in names, and deleting what is in use.
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kMostBytes = std::numeric_limits<uint64_t>::max();

class BadQuotasTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a", 64 * kMiB, 128 * kMiB);
    MakeTenant("b");
    before_ = Settle();
    tenants_ = Tenants();
  }
  void TearDown() override {
    ExpectServed("b");
    ExpectBackTo(before_);
    EXPECT_EQ(Tenants(), tenants_) << "nothing has changed";
    ComponentTest::TearDown();
  }

  std::string Tenants() const {
    auto list = admin().ListTenants(v1::ListTenantsRequest());
    if (list.ok()) {
      // It counts what was written and deleted again, too.
      for (auto& tenant : *list->mutable_tenants()) tenant.clear_revision();
    }
    return list.ok() ? list->DebugString() : list.status().ToString();
  }

  static v1::SetTenantRequest For(const std::string& name) {
    v1::SetTenantRequest request;
    request.set_name(name);
    return request;
  }
  // Of tenant a, or of a tenant that would be new: refused in the same way.
  void ExpectBad(const std::function<void(v1::SetTenantRequest*)>& fill) {
    for (const std::string name : {"a", "new"}) {
      v1::SetTenantRequest request = For(name);
      fill(&request);
      const auto answer = SetTenant(request);
      ASSERT_FALSE(answer.ok()) << request.DebugString();
      const auto detail = GetErrorDetail(answer.status());
      ASSERT_TRUE(detail.has_value())
          << answer.status() << request.DebugString();
      EXPECT_EQ(detail->reason, ErrorReason::kBadRequest) << answer.status();
      EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
      EXPECT_FALSE(answer.status().message().empty());
    }
    EXPECT_FALSE(std::filesystem::exists(TenantDir("new")));
  }

  Footprint before_;
  std::string tenants_;
};

TEST_F(BadQuotasTest, FractionsOutsideZeroToOneAreBadRequests) {
  for (const double fraction :
       {-0.1, -1e-300, 1.0000001, 25.0, kNaN, -kNaN, kInfinity, -kInfinity}) {
    SCOPED_TRACE(fraction);
    ExpectBad([&](v1::SetTenantRequest* request) {
      request->mutable_guarantee()->set_fraction(fraction);
    });
    ExpectBad([&](v1::SetTenantRequest* request) {
      request->mutable_limit()->set_fraction(fraction);
    });
  }
}

TEST_F(BadQuotasTest, WeightsThatDivideNothingAreBadRequests) {
  for (const double weight : {0.0, -0.0, -1.0, kNaN, kInfinity, -kInfinity}) {
    SCOPED_TRACE(weight);
    ExpectBad(
        [&](v1::SetTenantRequest* request) { request->set_weight(weight); });
  }
}

TEST_F(BadQuotasTest, ZeroHandlesOrSessionsAreBadRequests) {
  ExpectBad([](v1::SetTenantRequest* request) { request->set_max_handles(0); });
  ExpectBad(
      [](v1::SetTenantRequest* request) { request->set_max_sessions(0); });
}

TEST_F(BadQuotasTest, MoreHandlesOrSessionsThanTheFileTakesAreBadRequests) {
  for (const uint32_t most : {1'000'001U, ~0U}) {
    ExpectBad([most](v1::SetTenantRequest* request) {
      request->set_max_handles(most);
    });
  }
  for (const uint32_t most : {100'001U, ~0U}) {
    ExpectBad([most](v1::SetTenantRequest* request) {
      request->set_max_sessions(most);
    });
  }
  for (const std::string wrong :
       {"--max-handles=1000001", "--max-sessions=100001"}) {
    EXPECT_EQ(Gmb({"tenant", "set", "a", wrong}).exit_code, 2) << wrong;
  }
}

TEST_F(BadQuotasTest, AGuaranteeAboveTheLimitIsABadRequest) {
  ExpectBad([](v1::SetTenantRequest* request) {
    request->mutable_guarantee()->set_bytes(8 * kMiB);
    request->mutable_limit()->set_bytes(4 * kMiB);
  });
}

TEST_F(BadQuotasTest, BytesBeyondEverythingAreRefusedWithAReason) {
  for (const uint64_t bytes : {kMostBytes, uint64_t{1} << 63}) {
    v1::SetTenantRequest request = For("a");
    request.mutable_guarantee()->set_bytes(bytes);
    request.mutable_limit()->set_bytes(bytes);
    const auto answer = SetTenant(request);
    ASSERT_FALSE(answer.ok());
    EXPECT_TRUE(GetErrorDetail(answer.status()).has_value()) << answer.status();
    ExpectBad([&](v1::SetTenantRequest* limit) {
      limit->mutable_limit()->set_bytes(bytes);
    });
  }
}

// The same bound as in the configuration file.
TEST_F(BadQuotasTest, AmountsAreAtMost64TiB) {
  constexpr uint64_t kMost = uint64_t{64} << 40;
  ExpectBad([](v1::SetTenantRequest* request) {
    request->mutable_limit()->set_bytes(kMost + 1);
  });
  ExpectBad([](v1::SetTenantRequest* request) {
    request->mutable_guarantee()->set_bytes(kMost + 1);
  });
  v1::SetTenantRequest request = For("most");
  request.mutable_limit()->set_bytes(kMost);
  EXPECT_TRUE(SetTenant(request).ok());
  v1::DeleteTenantRequest remove;
  remove.set_name("most");
  EXPECT_TRUE(admin().DeleteTenant(remove).ok());
}

TEST_F(BadQuotasTest, GuaranteesAboveThePoolAreOvercommittedByTheDeficit) {
  v1::SetTenantRequest request = For("b");
  request.mutable_guarantee()->set_bytes(200 * kMiB);
  const auto answer = SetTenant(request);
  const auto detail = GetErrorDetail(answer.status());
  ASSERT_TRUE(detail.has_value()) << answer.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status()));
  EXPECT_EQ(detail->reason, ErrorReason::kOvercommitted);
  EXPECT_EQ(detail->deficit_bytes, 8 * kMiB);
  EXPECT_EQ(Gmb({"tenant", "set", "new", "--guarantee", "100%"}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(TenantDir("new")));
}

TEST_F(BadQuotasTest, NamesThatAreNoNamesAreBadRequests) {
  for (const std::string& name : std::vector<std::string>{
           "", std::string(10'000, 'a'), std::string(64, 'a'), "a\nb", "\n",
           "a/b", "../b", ".", "..", "-a", "A", "a b", "\x01", "\xc3\xa9",
           std::string("a\0b", 3), "%s%n"}) {
    const auto answer = SetTenant(For(name));
    const auto detail = GetErrorDetail(answer.status());
    ASSERT_TRUE(detail.has_value()) << name << ": " << answer.status();
    EXPECT_EQ(detail->reason, ErrorReason::kBadRequest);
    EXPECT_EQ(detail->field, "name");
    EXPECT_LT(answer.status().message().size(), 300U);
    v1::GetTenantRequest get;
    get.set_name(name);
    EXPECT_TRUE(absl::IsNotFound(admin().GetTenant(get).status()));
    v1::DeleteTenantRequest remove;
    remove.set_name(name);
    const auto removed = admin().DeleteTenant(remove);
    EXPECT_TRUE(absl::IsNotFound(removed.status())) << removed.status();
    EXPECT_LT(removed.status().message().size(), 300U);
  }
}

TEST_F(BadQuotasTest, TheCommandRefusesThemToo) {
  for (const std::string share :
       {"-5%", "101%", "nan%", "inf", "1e2%", "%", "-1GiB"}) {
    const Said said = Gmb({"tenant", "set", "a", "--guarantee=" + share});
    EXPECT_EQ(said.exit_code, 2) << share << said.err;
  }
  for (const std::string name : {"a\nb", "../b", "UPPER"}) {
    const Said said = Gmb({"tenant", "set", name, "--limit", "10%"});
    EXPECT_EQ(said.exit_code, 1) << name;
    EXPECT_THAT(said.err, HasSubstr("BAD_REQUEST"));
  }
  EXPECT_NE(Gmb({"tenant", "set", std::string(10'000, 'x')}).exit_code, 0);
  EXPECT_NE(Gmb({"tenant", "set", ""}).exit_code, 0);
  for (const std::string weight : {"0", "-1", "nan", "heavy"})
    EXPECT_NE(Gmb({"tenant", "set", "a", "--weight=" + weight}).exit_code, 0);
}

TEST_F(BadQuotasTest, ATenantWithLiveSessionsIsNotDeletedAndWorksOn) {
  const auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  const auto lease = client->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok());
  v1::DeleteTenantRequest request;
  request.set_name("a");
  const auto answer = admin().DeleteTenant(request);
  const auto detail = GetErrorDetail(answer.status());
  ASSERT_TRUE(detail.has_value()) << answer.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status()));
  EXPECT_EQ(detail->reason, ErrorReason::kBadState);
  EXPECT_EQ(Gmb({"tenant", "delete", "a"}).exit_code, 1);
  EXPECT_TRUE(client->Acquire(4 * kMiB).ok());
  ExpectServed("a");
}

}  // namespace
}  // namespace gmb::component
