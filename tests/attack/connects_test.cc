// Connections faster than they are accepted, at one directory: those who come
// by another do not wait behind them.
#include <memory>
#include <string>
#include <vector>

#include "tests/attack/attack_fixture.h"

namespace gmb::attack {
namespace {

struct Connects {
  std::string name;
  std::vector<std::string> words;

  friend std::ostream& operator<<(std::ostream& out, const Connects& connects) {
    return out << connects.name;
  }
};

class FastConnectsTest : public AttackTest,
                         public ::testing::WithParamInterface<Connects> {
 protected:
  void SetUp() override { Start(); }
};

TEST_P(FastConnectsTest, LockNobodyOutWhoComesByAnotherDirectory) {
  std::vector<std::string> words = {"fast_connects", "--rate", "10000"};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  const auto tenants = StartAttacker(words);
  const auto shared = StartAttacker(words, SocketDir());
  ServeDuring(*tenants, 1);
  Stop(*tenants);
  Stop(*shared);
  ExpectCalmAgain();
}

INSTANTIATE_TEST_SUITE_P(
    Sockets, FastConnectsTest,
    ::testing::Values(
        Connects{"handles", {"--socket", "handle.sock"}},
        Connects{"handles_kept", {"--socket", "handle.sock", "--keep"}},
        Connects{"grpc", {"--socket", "gmb.sock"}},
        Connects{"grpc_kept", {"--socket", "gmb.sock", "--keep"}}),
    [](const auto& connects) { return connects.param.name; });

class FastConnectsEndTest : public AttackTest {};

TEST_F(FastConnectsEndTest, TheBrokerEndsInOrderWhileTheyCome) {
  Start();
  ExpectEndsInOrderDuring(
      {"fast_connects", "--socket", "gmb.sock", "--rate", "10000", "--keep"});
}

}  // namespace
}  // namespace gmb::attack
