// Fds that hold up whoever closes them: sent to either socket, they hold up
// nobody but their sender, on kernels that can refuse them and on those that
// can not.
#include <string>
#include <vector>

#include "tests/attack/attack_fixture.h"

namespace gmb::attack {
namespace {

class LingeringFdsTest : public AttackTest,
                         public ::testing::WithParamInterface<Kernel> {
 protected:
  void SetUp() override { Start(GetParam()); }
};

TEST_P(LingeringFdsTest, OneBeforeTheGreetingHoldsUpNobody) {
  ExpectHarmless({"linger_fd_handle", "--connections", "1"});
}

TEST_P(LingeringFdsTest, ManyBeforeTheGreetingHoldUpNobody) {
  ExpectHarmless({"linger_fd_handle", "--connections", "64", "--fds", "16"});
}

TEST_P(LingeringFdsTest, ThoseOnTheGrpcSocketHoldUpNobody) {
  ExpectHarmless({"linger_fd_grpc", "--connections", "24"});
}

TEST_P(LingeringFdsTest, ThoseOfASessionOnTheGrpcSocketHoldUpNobody) {
  ExpectHarmless({"linger_fd_grpc", "--connections", "24", "--greet"});
}

TEST_P(LingeringFdsTest, TheBrokerEndsInOrderWhileTheyCome) {
  ExpectEndsInOrderDuring({"linger_fd_handle", "--connections", "8"});
}

INSTANTIATE_TEST_SUITE_P(Kernels, LingeringFdsTest,
                         ::testing::Values(Kernel::kNewest,
                                           Kernel::kNoPassRights),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace gmb::attack
