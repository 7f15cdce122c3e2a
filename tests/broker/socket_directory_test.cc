#include "broker/socket_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "ipc/socket_path.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}
ino_t InodeOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}
bool Exists(const std::string& path) { return InodeOf(path) != 0; }

// Leaves a socket at a path, as a server does.
base::UniqueFd Listen(const std::string& path) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = *ipc::SocketAddress(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
            0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}
bool CanConnect(const std::string& path) {
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = *ipc::SocketAddress(path);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)) == 0;
}

class SocketDirectoryTest : public testing::Test {
 protected:
  SocketDirectoryTest() : old_umask_(::umask(0077)) {}
  ~SocketDirectoryTest() override { ::umask(old_umask_); }

  SocketDirectory Open() { return *SocketDirectory::Open(path_, std::nullopt); }

  const TempDirectory temp_;
  const std::string path_ = temp_ / "run/gmb";
  const mode_t old_umask_;
};

TEST_F(SocketDirectoryTest, IsMadeWithSafeModesWhateverTheUmask) {
  const SocketDirectory sockets = Open();
  EXPECT_EQ(ModeOf(path_), 0755u);
  EXPECT_EQ(ModeOf(path_ + "/admin"), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/tenants"), 0711u);
}

TEST_F(SocketDirectoryTest, AnAdminGroupMayEnterTheAdminDirectory) {
  const auto sockets = SocketDirectory::Open(path_, ::getegid());
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_EQ(ModeOf(path_ + "/admin"), 0750u);
}

TEST_F(SocketDirectoryTest, AnExistingDirectoryKeepsItsMode) {
  ASSERT_EQ(::mkdir((temp_ / "run").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  const SocketDirectory sockets = Open();
  EXPECT_EQ(ModeOf(path_), 0700u);
}

TEST_F(SocketDirectoryTest, ASecondBrokerIsRefused) {
  const SocketDirectory sockets = Open();
  const auto second = SocketDirectory::Open(path_, std::nullopt);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(std::to_string(::getpid())));
}

TEST_F(SocketDirectoryTest, EveryDirectoryHasSocketsOfItsOwn) {
  SocketDirectory sockets = Open();
  ASSERT_TRUE(sockets.AddTenant("one", {}).ok());
  ASSERT_TRUE(sockets.AddTenant("two", {.mode = 0750}).ok());
  EXPECT_EQ(ModeOf(path_ + "/tenants/one"), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/tenants/two"), 0750u);
  EXPECT_EQ(sockets.GrpcSocket(), path_ + "/gmb.sock");
  EXPECT_EQ(sockets.AdminGrpcSocket(), path_ + "/admin/gmb.sock");
  EXPECT_EQ(sockets.TenantGrpcSocket("one"), path_ + "/tenants/one/gmb.sock");
  EXPECT_EQ(sockets.TenantHandleSocket("two"),
            path_ + "/tenants/two/handle.sock");
}

TEST_F(SocketDirectoryTest, RemovingATenantRemovesItsDirectoryAndNothingElse) {
  SocketDirectory sockets = Open();
  ASSERT_TRUE(sockets.AddTenant("a", {}).ok());
  ASSERT_TRUE(sockets.AddTenant("b", {}).ok());
  const base::UniqueFd of_a = Listen(sockets.TenantGrpcSocket("a"));
  const base::UniqueFd of_b = Listen(sockets.TenantGrpcSocket("b"));
  EXPECT_TRUE(sockets.RemoveTenant("a").ok());
  EXPECT_TRUE(sockets.RemoveTenant("a").ok());  // already gone
  EXPECT_FALSE(Exists(path_ + "/tenants/a"));
  EXPECT_TRUE(CanConnect(path_ + "/tenants/b/gmb.sock"));

  std::ofstream(path_ + "/tenants/b/notes") << "mine";
  EXPECT_EQ(sockets.RemoveTenant("b").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Exists(path_ + "/tenants/b/notes"));
  EXPECT_FALSE(Exists(path_ + "/tenants/b/gmb.sock"));
}

TEST_F(SocketDirectoryTest, SymbolicLinksAreNotFollowed) {
  ASSERT_TRUE(SocketDirectory::Open(path_, std::nullopt).ok());
  ASSERT_EQ(::mkdir((temp_ / "target").c_str(), 0751), 0);
  ASSERT_EQ(::chmod((temp_ / "target").c_str(), 0751), 0);
  ASSERT_EQ(
      ::symlink((temp_ / "target").c_str(), (path_ + "/tenants/a").c_str()), 0);
  SocketDirectory sockets = Open();
  EXPECT_FALSE(sockets.AddTenant("a", {.mode = 0777}).ok());
  EXPECT_FALSE(sockets.RemoveTenant("a").ok());
  EXPECT_EQ(ModeOf(temp_ / "target"), 0751u);
}

TEST_F(SocketDirectoryTest, ASymbolicLinkAsAdminDirectoryIsRefused) {
  { const SocketDirectory first = Open(); }
  ASSERT_EQ(::rmdir((path_ + "/admin").c_str()), 0);
  ASSERT_EQ(::symlink("/", (path_ + "/admin").c_str()), 0);
  EXPECT_FALSE(SocketDirectory::Open(path_, std::nullopt).ok());
}

TEST_F(SocketDirectoryTest, ADirectoryOfAStrangerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  SocketDirectory sockets = Open();
  ASSERT_EQ(::mkdir((path_ + "/tenants/a").c_str(), 0700), 0);
  ASSERT_EQ(::chown((path_ + "/tenants/a").c_str(), 4242, 4242), 0);
  EXPECT_EQ(sockets.AddTenant("a", {}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(sockets.AddTenant("a", {.owner = 4242, .mode = 0700}).ok());
}

TEST_F(SocketDirectoryTest, OwnerGroupAndModeAreSetAsAsked) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  SocketDirectory sockets = Open();
  ASSERT_TRUE(
      sockets.AddTenant("a", {.owner = 4242, .group = 4343, .mode = 0770})
          .ok());
  struct stat info {};
  ASSERT_EQ(::lstat((path_ + "/tenants/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 4242u);
  EXPECT_EQ(info.st_gid, 4343u);
  EXPECT_EQ(info.st_mode & 07777, 0770u);
}

TEST_F(SocketDirectoryTest, WithoutAGroupItIsOfTheBrokersAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  SocketDirectory sockets = Open();
  ASSERT_TRUE(sockets.AddTenant("a", {.group = 4343, .mode = 0750}).ok());
  ASSERT_TRUE(sockets.AddTenant("a", {.mode = 0750}).ok());
  struct stat info {};
  ASSERT_EQ(::lstat((path_ + "/tenants/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, ::getegid());
  EXPECT_EQ(info.st_mode & 07777, 0750u);
}

TEST_F(SocketDirectoryTest, NamesAndPathsThatCannotBeSocketsAreRefused) {
  SocketDirectory sockets = Open();
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "../../tmp/x"}) {
    EXPECT_EQ(sockets.AddTenant(name, {}).code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_EQ(sockets.AddTenant(std::string(90, 'x'), {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SocketDirectory::Open(temp_ / std::string(100, 'x'), std::nullopt)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gmb::broker
