#include <sys/stat.h>

#include <fstream>

#include "client/cli/demo/temp_dir.h"
#include "client/cli/tenant_identity.h"
#include "gtest/gtest.h"
#include "tests/cli/as_ordinary_user.h"

namespace gmb::cli {
namespace {

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
  ASSERT_EQ(mkdir((root() + "/admin").c_str(), 0700), 0);
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

// Its operator has named it so.
TEST_F(TenantSocketDirTest, ABrokersDirectoryMayLookLikeATenants) {
  ASSERT_EQ(mkdir((root() + "/admin").c_str(), 0700), 0);
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
