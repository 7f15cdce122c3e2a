// A process is known by the directory it came through, its token, its uid, or
// by default.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmb/error.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr char kToken[] = "a-token-of-more-than-16-bytes";

class IdentityTest : public ComponentTest {
 protected:
  void Start(const std::string& more) {
    const std::string file = Directory() + "/token";
    std::ofstream(file) << kToken;
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    BrokerOptions options;
    options.config = absl::StrCat(
        "tenants:\n  - {name: by-dir}\n  - {name: by-token, token_file: ", file,
        "}\n", more);
    StartBroker(options);
  }
  static absl::StatusOr<std::string> TenantAt(const std::string& directory,
                                              const std::string& token = "") {
    ClientOptions options = OptionsFor(directory);
    options.tenant_token = token;
    const auto client = Client::Connect(options);
    if (!client.ok()) return client.status();
    return (*client)->tenant();
  }
  static ErrorReason ReasonOf(const absl::StatusOr<std::string>& tenant) {
    return GetErrorDetail(tenant.status()).value_or(ErrorDetail()).reason;
  }
};

TEST_F(IdentityTest, DirectoryThenTokenThenUid) {
  Start(absl::StrCat("  - {name: by-uid, uids: [", ::getuid(), "]}\n"));
  EXPECT_EQ(TenantAt(TenantDir("by-dir")).value_or("none"), "by-dir");
  EXPECT_EQ(TenantAt(TenantDir("by-dir"), kToken).value_or("none"), "by-dir");
  EXPECT_EQ(TenantAt(SocketDir(), kToken).value_or("none"), "by-token");
  EXPECT_EQ(TenantAt(SocketDir()).value_or("none"), "by-uid");
  EXPECT_EQ(ReasonOf(TenantAt(SocketDir(), "another token of 16 bytes")),
            ErrorReason::kNoSuchTenant)
      << "a wrong token is not helped by the uid";
}

TEST_F(IdentityTest, StrangersAreTheDefaultTenantWhereThereIsOne) {
  Start("  - {name: anybody}\ndefault_tenant: anybody\n");
  EXPECT_EQ(TenantAt(SocketDir()).value_or("none"), "anybody");
}

TEST_F(IdentityTest, StrangersAreRefusedWhereThereIsNone) {
  Start("");
  const auto stranger = TenantAt(SocketDir());
  EXPECT_EQ(ReasonOf(stranger), ErrorReason::kNoSuchTenant)
      << stranger.status();
  EXPECT_EQ(Gmb({"tenant", "set", "by-dir", "--uid", absl::StrCat(::getuid())})
                .exit_code,
            0);
  EXPECT_EQ(TenantAt(SocketDir()).value_or("none"), "by-dir");
}

TEST_F(IdentityTest, ADeletedTenantsDirectoryIsNoWayIn) {
  Start("");
  EXPECT_EQ(Gmb({"tenant", "delete", "by-dir"}).exit_code, 0);
  EXPECT_FALSE(TenantAt(TenantDir("by-dir")).ok());
  EXPECT_EQ(Gmb({"tenant", "set", "by-dir"}).exit_code, 0);
  EXPECT_EQ(TenantAt(TenantDir("by-dir")).value_or("none"), "by-dir");
}

}  // namespace
}  // namespace gmb::component
