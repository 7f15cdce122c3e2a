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
using ::testing::IsEmpty;
using ::testing::SizeIs;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}
ino_t InodeOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}
bool Exists(const std::string& path) { return InodeOf(path) != 0; }

// Listens as gRPC would: on a path, with whatever mode the umask leaves.
ipc::UniqueFd Listen(const std::string& path) {
  ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = *ipc::SocketAddress(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
            0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}
bool CanConnect(const std::string& path) {
  const ipc::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
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

TEST_F(SocketDirectoryTest, TheGrpcSocketIsOneSocketInAllDirectories) {
  SocketDirectory sockets = Open();
  ASSERT_TRUE(sockets.AddTenant("early", {}).ok());
  EXPECT_FALSE(sockets.PublishGrpcSocket().ok());  // nobody listens yet
  const ipc::UniqueFd server = Listen(sockets.GrpcSocket());
  const auto problems = sockets.PublishGrpcSocket();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_THAT(*problems, IsEmpty());
  ASSERT_TRUE(sockets.AddTenant("late", {.mode = 0750}).ok());

  EXPECT_EQ(ModeOf(sockets.GrpcSocket()), 0666u);
  EXPECT_EQ(ModeOf(path_ + "/tenants/early"), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/tenants/late"), 0750u);
  for (const char* place : {"/admin", "/tenants/early", "/tenants/late"}) {
    EXPECT_EQ(InodeOf(path_ + place + "/gmb.sock"),
              InodeOf(sockets.GrpcSocket()))
        << place;
    EXPECT_TRUE(CanConnect(path_ + place + "/gmb.sock")) << place;
  }
}

TEST_F(SocketDirectoryTest, ANewBrokerReplacesTheSocketsOfADeadOne) {
  {
    SocketDirectory first = Open();
    const ipc::UniqueFd server = Listen(first.GrpcSocket());
    ASSERT_TRUE(first.AddTenant("a", {}).ok());
  }
  EXPECT_FALSE(CanConnect(path_ + "/tenants/a/gmb.sock"));
  SocketDirectory second = Open();
  const ipc::UniqueFd server = Listen(second.GrpcSocket());
  ASSERT_TRUE(second.AddTenant("a", {}).ok());
  ASSERT_TRUE(second.PublishGrpcSocket().ok());
  EXPECT_TRUE(CanConnect(path_ + "/tenants/a/gmb.sock"));
  EXPECT_FALSE(Exists(path_ + "/tenants/a/.gmb.sock.new"));
}

TEST_F(SocketDirectoryTest, RemovingATenantRemovesItsDirectoryAndNothingElse) {
  SocketDirectory sockets = Open();
  const ipc::UniqueFd server = Listen(sockets.GrpcSocket());
  ASSERT_TRUE(sockets.AddTenant("a", {}).ok());
  ASSERT_TRUE(sockets.AddTenant("b", {}).ok());
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

TEST_F(SocketDirectoryTest, RemoveGrpcSocketLeavesNoneBehind) {
  SocketDirectory sockets = Open();
  const ipc::UniqueFd server = Listen(sockets.GrpcSocket());
  ASSERT_TRUE(sockets.AddTenant("a", {}).ok());
  ASSERT_TRUE(sockets.PublishGrpcSocket().ok());
  sockets.RemoveGrpcSocket();
  for (const char* place : {"", "/admin", "/tenants/a"}) {
    EXPECT_FALSE(Exists(path_ + place + "/gmb.sock")) << place;
  }
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

TEST_F(SocketDirectoryTest, ATenantThatFillsItsDirectoryHarmsItselfOnly) {
  SocketDirectory sockets = Open();
  ASSERT_TRUE(sockets.AddTenant("bad", {}).ok());
  ASSERT_TRUE(sockets.AddTenant("good", {}).ok());
  ASSERT_EQ(::mkdir((path_ + "/tenants/bad/gmb.sock").c_str(), 0700), 0);
  const ipc::UniqueFd server = Listen(sockets.GrpcSocket());
  const auto problems = sockets.PublishGrpcSocket();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_THAT(*problems, SizeIs(1));
  EXPECT_TRUE(CanConnect(path_ + "/tenants/good/gmb.sock"));
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
