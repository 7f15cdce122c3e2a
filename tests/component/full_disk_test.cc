// A disk with no room for the broker's state: said, and nothing is lost.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

class FullDiskTest : public ComponentTest {
 protected:
  std::string Database() const { return Directory() + "/state/gmb.db"; }
  static void LimitFiles(pid_t pid, rlim_t bytes) {
    const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    ASSERT_EQ(::prlimit(pid, RLIMIT_FSIZE, &limit, nullptr), 0);
  }
};

// No file of the broker may grow, as on a full disk.
TEST_F(FullDiskTest, AChangeThatCannotBeStoredIsRefusedAndNotMade) {
  StartBroker();
  MakeTenant("a");
  const Footprint before = Settle();
  const pid_t pid = broker().program().pid();
  LimitFiles(pid, 512);
  const Said refused = Gmb({"tenant", "set", "a", "--limit", "10%"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("disk"));
  EXPECT_EQ(Gmb({"tenant", "set", "new", "--limit", "10%"}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(TenantDir("new") + "/handle.sock"));
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).out, HasSubstr("100%"));
  EXPECT_EQ(Gmb({"tenant", "delete", "a"}).exit_code, 1);
  EXPECT_EQ(Gmb({"tenant", "delete", "a", "--wait", "1s"}).exit_code, 1);
  // Acts of operators in trouble are done. (The log can not grow here.)
  EXPECT_EQ(Gmb({"pool", "drain"}).exit_code, 0);
  EXPECT_TRUE(Pool().draining());
  EXPECT_EQ(Gmb({"reclaim", "a"}).exit_code, 0);
  EXPECT_EQ(Gmb({"pool", "undrain"}).exit_code, 0);
  const Said doctor = Gmb({"doctor"});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("cannot write to"));

  LimitFiles(pid, RLIM_INFINITY);
  ExpectServed("a");
  ExpectBackTo(before);
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
  ExpectServed("a");
  KillBroker();
  StartBroker();
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).out, HasSubstr("50% ="));
}

// On a real file system that is full, where mounting one is allowed.
TEST_F(FullDiskTest, AFirstStartOnAFullDiskSaysSoAndAnotherWithRoomWorks) {
  const std::string state = Directory() + "/state";
  std::filesystem::create_directory(state);
  std::string prepare = absl::StrCat(
      "mount -t tmpfs -o size=64k none ", state, " && { cat /dev/zero > ",
      state, "/filler 2>/dev/null || true; } && exec \"$@\"");
  std::vector<std::string> wrapper = {"unshare", "-m",    "sh",
                                      "-c",      prepare, "sh"};
  Program probe(Directory(), "probe",
                {"unshare", "-m", "mount", "-t", "tmpfs", "none", state});
  if (probe.AwaitExit() != 0)
    wrapper = {"sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"};
  BrokerOptions options;
  options.wrapper = wrapper;
  BrokerProcess full(Directory(), options);
  EXPECT_EQ(full.program().AwaitExit(), 1) << full.Log();
  EXPECT_THAT(full.Log(), HasSubstr("cannot_start"));
  EXPECT_THAT(full.Log(), AnyOf(HasSubstr("disk"), HasSubstr("space"),
                                HasSubstr("too large")));
  EXPECT_EQ(full.program().SanitizerReport(), "");
  StartBroker();
  MakeTenant("a");
  ExpectServed("a");
}

// With the lock file, whose room it has, and without: a new one finds none.
TEST_F(FullDiskTest, ABrokerThatWasKilledStartsOnAFullDiskWithoutItsLockFile) {
  const std::string state = Directory() + "/state";
  Program probe(Directory(), "probe",
                {"unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"});
  if (probe.AwaitExit() != 0) GTEST_SKIP() << "no file system can be mounted";
  StartBroker();
  MakeTenant("a");
  KillBroker();
  const std::string saved = Directory() + "/saved";
  std::filesystem::rename(state, saved);
  std::filesystem::create_directory(state);
  BrokerOptions options;
  options.wrapper = {
      "unshare",
      "-m",
      "sh",
      "-c",
      absl::StrCat("mount -t tmpfs -o size=1m none ", state, " && cp -p ",
                   saved, "/* ", state, " && { cat /dev/zero > ", state,
                   "/filler 2>/dev/null || true; } && exec \"$@\""),
      "sh"};
  StartBroker(options);
  EXPECT_THAT(broker().Log(), Not(HasSubstr("lock_file")));
  KillBroker();
  std::filesystem::remove(saved + "/gmbd.lock");
  StartBroker(options);
  EXPECT_THAT(broker().Log(),
              AllOf(HasSubstr("warning lock_file"), HasSubstr("No space")));
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).out, HasSubstr("100%"));
  ExpectServed("a");
  const Said refused = Gmb({"tenant", "set", "a", "--limit", "10%"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("disk"));
}

TEST_F(FullDiskTest, ADamagedDatabaseKeepsItFromServingAndIsNotOverwritten) {
  StartBroker();
  MakeTenant("a");
  StopBroker();
  for (const std::string& damage : std::vector<std::string>{
           std::string("this is not a database at all"),
           std::string(100'000, 0x5A), ReadFile(Database()).substr(0, 5'000)}) {
    std::ofstream(Database(), std::ios::binary | std::ios::trunc) << damage;
    BrokerProcess refused(Directory(), {});
    EXPECT_EQ(refused.program().AwaitExit(), 1) << refused.Log();
    EXPECT_THAT(refused.Log(), HasSubstr("--fresh-state"));
    EXPECT_EQ(ReadFile(Database()), damage);
    EXPECT_FALSE(std::filesystem::exists(SocketDir() + "/admin/handle.sock"));
  }
  BrokerOptions options;
  options.flags = {"--fresh-state"};
  StartBroker(options);
  EXPECT_THAT(broker().Log(), HasSubstr("state_set_aside"));
  EXPECT_THAT(Gmb({"tenant", "list"}).out, Not(HasSubstr("100%")));
}

}  // namespace
}  // namespace gmb::component
