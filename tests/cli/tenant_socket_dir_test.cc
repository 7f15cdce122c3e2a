#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/tenant_identity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/as_ordinary_user.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

class TenantSocketDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.ok()) << dir_.status();
    ASSERT_EQ(chmod(root().c_str(), 0755), 0);
    ASSERT_EQ(mkdir((root() + "/tenants").c_str(), 0755), 0);
    ASSERT_EQ(mkdir(own().c_str(), 0755), 0);
  }
  void TearDown() override { chmod(own().c_str(), 0755); }
  const std::string& root() const { return dir_->path(); }
  std::string own() const { return root() + "/tenants/a"; }
  // As a broker does before it opens a socket.
  void MakeAdmin() const {
    ASSERT_EQ(mkdir((root() + "/admin").c_str(), 0700), 0);
  }
  // There until the directory is removed.
  static void MakeSocket(const std::string& path) {
    const base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                     sizeof(address)),
              0);
  }
  std::string Chosen(const std::string& tenant) const {
    return AsOrdinaryUser([&] { return TenantSocketDir(root(), tenant); });
  }

  absl::StatusOr<TempDir> dir_ = TempDir::Make();
};

TEST_F(TenantSocketDirTest, ATenantsOwnDirectoryIsUsed) {
  ASSERT_EQ(chmod(own().c_str(), 0755), 0);  // whatever the umask is
  EXPECT_EQ(Chosen("a"), own());
}

TEST_F(TenantSocketDirTest, OneThatThisUserMayNotEnterIsNot) {
  ASSERT_EQ(chmod(own().c_str(), 0), 0);
  EXPECT_EQ(Chosen("a"), root()) << "the uid may tell the tenant there";
}

// It has left its directories, without sockets.
TEST_F(TenantSocketDirTest, ABrokerThatHasStoppedIsFoundFromATenantsDirectory) {
  EXPECT_EQ(SharedSocketDir(own()), own()) << "it may be mounted alone";
  EXPECT_EQ(TenantOfDirectory(own()), "a");
  MakeAdmin();
  ASSERT_EQ(mkdir((root() + "/tenants/b").c_str(), 0755), 0);
  EXPECT_EQ(SharedSocketDir(own()), root());
  EXPECT_EQ(SharedSocketDir(own() + "/"), root());
  EXPECT_EQ(SharedSocketDir(root()), root());
  EXPECT_EQ(TenantSocketDir(own(), "a"), own());
  EXPECT_EQ(TenantSocketDir(own(), "b"), root() + "/tenants/b");
  EXPECT_EQ(TenantSocketDir(own(), "nobody"), root());
  EXPECT_EQ(TenantSocketDir(own(), ""), own());
  EXPECT_EQ(TenantOfDirectory(root()), "");
}

// It opens the tenants' sockets before its own.
TEST_F(TenantSocketDirTest, ABrokerThatStartsIsFoundFromATenantsDirectory) {
  MakeSocket(own() + "/handle.sock");
  EXPECT_EQ(SharedSocketDir(own()), own()) << "it may be mounted alone";
  MakeAdmin();
  EXPECT_EQ(SharedSocketDir(own()), root());
  EXPECT_EQ(TenantSocketDir(own(), "nobody"), root());
  EXPECT_EQ(TenantSocketDir(own(), ""), own());
}

TEST_F(TenantSocketDirTest, ARefusedEntryNamesTheDirectoryThatWasTried) {
  MakeAdmin();
  ASSERT_EQ(chmod(own().c_str(), 0), 0);
  const std::string why = AsOrdinaryUser(
      [&] { return ConnectAsTenant(own(), "", {}).status().ToString(); });
  EXPECT_THAT(why, HasSubstr("PERMISSION_DENIED"));
  EXPECT_THAT(why, HasSubstr("may enter " + own()));
}

// Its operator has named it so.
TEST_F(TenantSocketDirTest, ABrokersDirectoryMayLookLikeATenants) {
  MakeAdmin();
  ASSERT_EQ(mkdir((own() + "/admin").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((own() + "/tenants").c_str(), 0755), 0);
  EXPECT_EQ(SharedSocketDir(own()), own());
  EXPECT_EQ(TenantOfDirectory(own()), "");
}

TEST_F(TenantSocketDirTest, NeitherIsWhatIsNoDirectory) {
  std::ofstream(root() + "/tenants/file") << "x";
  ASSERT_EQ(chmod((root() + "/tenants/file").c_str(), 0755), 0);
  EXPECT_EQ(Chosen("file"), root());
  EXPECT_EQ(Chosen("nobody"), root());
  EXPECT_EQ(Chosen("../tenants/a"), root());
  EXPECT_EQ(Chosen(""), root());
}

}  // namespace
}  // namespace gmb::cli
