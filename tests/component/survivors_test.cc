// A broker that starts beside a client of one that was killed: its pool lacks
// what that client has mapped, and has it once the client has ended.
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr uint64_t kHeld = 256 * kMiB;
constexpr uint64_t kWhole = 960 * kMiB;  // of 1 GiB, less the headroom

// On the fake driver, whose GPU each process has for itself: for what the
// others use of it the test speaks.
class SurvivorsTest : public ComponentTest {
 protected:
  void StartBesideOthers() {
    BrokerOptions options;
    options.devices = {"cuda:0"};
    options.flags = {"--headroom", "64MiB"};
    options.wrapper = WithFakeDriver({});
    StartBroker(options);
  }
  [[nodiscard]] Words WithFakeDriver(Words words) const {
    words.insert(words.begin(), {"env", "LD_LIBRARY_PATH=" FAKE_CUDA_DIR,
                                 "FAKE_CUDA_OTHERS=" + others_});
    return words;
  }
  void OthersUse(uint64_t bytes) const {
    std::ofstream(others_ + ".new") << bytes;
    ASSERT_EQ(::rename((others_ + ".new").c_str(), others_.c_str()), 0);
  }
  std::unique_ptr<Program> Hold(const std::string& name, uint64_t bytes) const {
    return std::make_unique<Program>(
        Directory(), name,
        WithFakeDriver({GMB_PROGRAM, "--socket-dir", SocketDir(), "hold",
                        "--tenant", "a", "--bytes", std::to_string(bytes)}));
  }

  const std::string others_ = Directory() + "/others";
};

TEST_F(SurvivorsTest, ThePoolGrowsWhenAClientOfAKilledBrokerHasEnded) {
  StartBesideOthers();
  MakeTenant("a");
  ASSERT_EQ(Pool().target_bytes(), kWhole);
  const auto survivor = Hold("survivor", kHeld);
  ASSERT_TRUE(survivor->AwaitOut("holding")) << survivor->Err();
  survivor->Signal(SIGSTOP);  // or it would end with its broker
  KillBroker();
  OthersUse(kHeld);

  StartBesideOthers();
  EXPECT_EQ(Pool().target_bytes(), kWhole - kHeld);
  const auto refused = Hold("refused", kWhole);
  EXPECT_NE(refused->AwaitExit(), 0);

  survivor->Signal(SIGKILL);
  EXPECT_EQ(survivor->AwaitExit(), 128 + SIGKILL);
  OthersUse(0);
  EXPECT_TRUE(Await([this] { return Pool().target_bytes() == kWhole; }))
      << Pool().ShortDebugString();
  // Events are written by a thread of their own.
  EXPECT_TRUE(Await([this] {
    return absl::StrContains(broker().Log(), "pool_grown");
  })) << broker().Log();
  EXPECT_EQ(Pool().outside_bytes(), 0U);
  EXPECT_EQ(Pool().headroom_bytes(), 64 * kMiB);
  const Said status = Gmb({"status"});
  EXPECT_THAT(status.out, HasSubstr("pool 960.00 MiB of 1.00 GiB"))
      << status.err;

  const auto all = Hold("all", kWhole);
  EXPECT_TRUE(all->AwaitOut("holding")) << all->Err();
  EXPECT_EQ(Pool().granted_bytes(), kWhole);
  all->Signal(SIGTERM);
  EXPECT_EQ(all->AwaitExit(), 0) << all->Err();
}

}  // namespace
}  // namespace gmb::component
