// A broker that is given no memory, or no thread: it ends, or does not start,
// and the next one goes on with all.
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/component/faults_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A client that waits for the next broker is to meet it.
constexpr absl::Duration kPatient = absl::Seconds(5);

class MemoryFaultsTest : public FaultsFixture {
 protected:
  // So much more than the broker has by now.
  void LimitMemory(rlim_t more) {
    rlim_t pages = 0;
    std::ifstream(absl::StrCat("/proc/", broker().program().pid(), "/statm")) >>
        pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
    const rlimit limit{.rlim_cur = bytes + more, .rlim_max = RLIM_INFINITY};
    ASSERT_EQ(::prlimit(broker().program().pid(), RLIMIT_AS, &limit, nullptr),
              0);
  }
};

TEST_F(MemoryFaultsTest, AnAllocationThatFailsEndsTheBrokerAndLosesNothing) {
  uint64_t ends = 0;
  uint64_t k = 0;
  for (bool had_it = true; had_it && !HasFailure(); k = 2 * k + 1) {
    SCOPED_TRACE(absl::StrCat("allocation ", k));
    const Lived lived = LiveUnder(
        {.call = FaultyCall::kAllocate, .error = ENOMEM, .first = k}, kPatient);
    had_it = lived.calls > k;
    ends += absl::StrContains(lived.log, "is given no memory") ? 1 : 0;
  }
  EXPECT_GT(k, 1000U) << "it lived without memory";
  EXPECT_GT(ends, 3U) << "what gRPC catches has it wait for ever";
}

// That of the system, as a shell's ulimit -v sets it.
TEST_F(MemoryFaultsTest, ALimitOnAddressesIsMetInTheSameWay) {
  for (const rlim_t more : {rlim_t{0}, rlim_t{40} << 20}) {
    SCOPED_TRACE(absl::StrCat(more, " bytes more"));
    LimitMemory(more);
    LiveOnce(kPatient);
    if (HasFailure()) return;
    Restart();  // this one has no limit
  }
}

// Two brokers end with the same record in hand; nothing is wrong with it.
TEST_F(MemoryFaultsTest, InAdoptionItIsNotTakenForTheFaultOfARecord) {
  uint64_t ends = 0;
  KillBroker();
  for (uint64_t k = 0; !HasFailure(); ++k) {
    SCOPED_TRACE(absl::StrCat("after file ", k));
    uint64_t ended = 0;
    for (int i = 0; i < 2; ++i) {
      Arm({.call = FaultyCall::kAllocateAfterSeals, .first = k});
      BrokerProcess next(Directory(), Options());
      if (next.program().AwaitErr(" serving ")) break;
      Disarm();
      EXPECT_EQ(next.program().AwaitExit(), 128 + SIGABRT) << next.Log();
      EXPECT_THAT(next.Log(), HasSubstr("is given no memory"));
      ++ended;
    }
    Disarm();
    if (ended == 0) break;
    ends += ended;
  }
  EXPECT_GT(ends, 4U);
  StartBroker(Options());
  EXPECT_THAT(broker().Log(), Not(HasSubstr("record_set_aside")));
  ExpectTheWitnessHasAll();
}

TEST_F(MemoryFaultsTest, WithoutAThreadItDoesNotStartAndSaysSo) {
  uint64_t refused = 0;
  KillBroker();
  bool had_it = true;
  for (uint64_t k = 0; had_it && !HasFailure(); k += k == 0 ? 1 : 2) {
    SCOPED_TRACE(absl::StrCat("thread ", k));
    Arm({.call = FaultyCall::kThread, .error = EAGAIN, .first = k});
    BrokerProcess next(Directory(), Options());
    if (!next.program().AwaitErr(" serving ")) {
      ++refused;
      // Where gRPC starts threads for itself, it ends the process.
      if (next.program().AwaitExit() != 128 + SIGABRT)
        EXPECT_THAT(next.Log(), HasSubstr("thread")) << next.Log();
      else
        EXPECT_THAT(next.Log(), HasSubstr("grpc")) << next.Log();
    }
    had_it = Disarm() > k;
  }
  EXPECT_GT(refused, 4U);
  StartBroker(Options());
  ExpectTheWitnessHasAll();
}

}  // namespace
}  // namespace gmb::component
