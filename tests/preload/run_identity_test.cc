// `gmb run` inside another one, as a tenant that has no directory of its own for
// it: the outer one's environment names the outer tenant's.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunIdentityTest : public ComponentTest {
 protected:
  void SetUp() override {
    const std::string token = TokenFile();
    std::ofstream(token) << "a-token-of-more-than-16-bytes";
    std::filesystem::permissions(token, std::filesystem::perms(0600));
    BrokerOptions options;
    options.config = absl::StrCat(
        "tenants:\n  - {name: a}\n  - {name: by-token, token_file: ", token,
        "}\n  - {name: by-uid, uids: [", ::getuid(), "]}\n");
    StartBroker(options);
  }
  std::string TokenFile() const { return Directory() + "/token"; }
  // As tenant a, and inside of that with `options`.
  Said Inside(Words options, const Words& outside = {}) const {
    Words words = {"run", "--tenant", "a", "--quiet"};
    words.insert(words.end(), outside.begin(), outside.end());
    words.insert(words.end(),
                 {"--preload", PRELOAD_LIBRARY, "--", GMB_PROGRAM, "run"});
    options.insert(options.end(), {"--preload", PRELOAD_LIBRARY, "--", "env"});
    words.insert(words.end(), options.begin(), options.end());
    return Gmb(words);
  }
  void ExpectShared(const Said& said, const std::string& tenant) const {
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_THAT(said.err, HasSubstr("gmb run: tenant " + tenant + " has"));
    EXPECT_THAT(said.out, HasSubstr("GMB_SOCKET_DIR=" + SocketDir() + "\n"));
  }
};

TEST_F(RunIdentityTest, ATokenSaysWhoTheInnerOneIs) {
  for (const Words& named : {Words(), Words{"--tenant", "by-token"}}) {
    Words options = {"--tenant-token-file", TokenFile()};
    options.insert(options.end(), named.begin(), named.end());
    const Said said = Inside(options);
    ExpectShared(said, "by-token");
    EXPECT_THAT(said.out, HasSubstr("GMB_RUN_TOKEN_FILE=" + TokenFile()));
  }
}

TEST_F(RunIdentityTest, AUidSaysItWhereThereIsNoDirectoryToEnter) {
  std::filesystem::remove_all(TenantDir("by-uid"));
  ExpectShared(Inside({"--tenant", "by-uid"}), "by-uid");
}

// For who the inner one is once the broker is back.
TEST_F(RunIdentityTest, ABrokerThatHasStoppedDoesNotMakeItTheOuterTenant) {
  StopBroker();
  const Words native = {"--fallback", "native"};
  const auto inside = [&](Words options) {
    options.insert(options.end(), native.begin(), native.end());
    const Said said = Inside(options, native);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    // By both: the inner one, too, looks where it is its own tenant.
    EXPECT_THAT(said.err, HasSubstr("no broker answers in " + SocketDir()));
    EXPECT_THAT(said.err,
                Not(HasSubstr("no broker answers in " + TenantDir("a"))));
    EXPECT_THAT(said.err, Not(HasSubstr("a token has no say")));
    return said.out;
  };
  const std::string by_token = inside({"--tenant-token-file", TokenFile()});
  EXPECT_THAT(by_token, HasSubstr("GMB_SOCKET_DIR=" + SocketDir() + "\n"));
  EXPECT_THAT(by_token, HasSubstr("GMB_RUN_TOKEN_FILE=" + TokenFile()));
  EXPECT_THAT(inside({"--tenant", "by-uid"}),
              HasSubstr("GMB_SOCKET_DIR=" + TenantDir("by-uid") + "\n"));
}

TEST_F(RunIdentityTest, ATokenInADirectoryAloneIsWarnedOfWithoutABroker) {
  StopBroker();
  const std::string alone = Directory() + "/alone/tenants/a";
  std::filesystem::create_directories(alone);
  Program program(Directory(), "run",
                  {GMB_PROGRAM, "--socket-dir", alone, "run", "--fallback",
                   "native", "--preload", PRELOAD_LIBRARY,
                   "--tenant-token-file", TokenFile(), "--", "env"});
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_THAT(program.Out(), HasSubstr("GMB_SOCKET_DIR=" + alone + "\n"));
  EXPECT_THAT(program.Err(),
              HasSubstr("only the socket directory of tenant a is here"));
}

TEST_F(RunIdentityTest, OneDirectoryAloneStaysWhereItIs) {
  // As a pod has it mounted: nothing is beside it.
  const std::string alone = Directory() + "/alone/tenants/a";
  std::filesystem::create_directories(alone);
  for (const char* const socket : {"/gmb.sock", "/handle.sock"})
    std::filesystem::create_symlink(TenantDir("a") + socket, alone + socket);
  Program program(
      Directory(), "run",
      {GMB_PROGRAM, "--socket-dir", alone, "run", "--preload", PRELOAD_LIBRARY,
       "--tenant-token-file", TokenFile(), "--", "env"});
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_THAT(program.Out(), HasSubstr("GMB_SOCKET_DIR=" + alone + "\n"));
  EXPECT_THAT(program.Err(), HasSubstr("gmb run: tenant a has"));
}

}  // namespace
}  // namespace gmb::component
