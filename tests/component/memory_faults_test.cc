// A broker that is given no memory, or no thread: it ends, or does not start,
// and the next one goes on with all.
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "ipc/socket_path.h"
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

// The last thread of a start is that which tells the service manager that the
// broker is alive.
TEST_F(MemoryFaultsTest, WithoutTheThreadOfItsWatchdogItDoesNotStartEither) {
  KillBroker();
  const std::string path = Directory() + "/notify";
  const base::UniqueFd manager(
      ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path);
  ASSERT_TRUE(address.ok()) << address.status();
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&*address),
                   sizeof(*address)),
            0);
  const auto hears = [&manager] {
    char text[256];
    return ::recv(manager.get(), text, sizeof(text), 0) > 0;
  };
  BrokerOptions watched = Options();
  watched.wrapper.insert(watched.wrapper.begin() + 1,
                         {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=60000000"});
  // The first start counts the broker's own threads (how many gRPC makes
  // differs). Each later one lacks an earlier one of them: the last are made
  // only once it serves.
  uint64_t threads = 0;
  bool met = false;
  for (int less = 0; less < 12 && !met && !HasFailure(); ++less) {
    SCOPED_TRACE(absl::StrCat("thread ", threads, " less ", less));
    Arm({.call = FaultyCall::kOwnThread,
         .error = EAGAIN,
         .first = less == 0 ? 1000 : threads - less});
    BrokerProcess next(Directory(), watched);
    bool serves = false;
    ASSERT_TRUE(Await([&] {
      serves = serves || hears();
      return serves || !next.program().IsRunning();
    }));
    const uint64_t calls = Disarm();
    if (less == 0) threads = calls;
    while (hears()) {
    }
    if (serves) continue;
    EXPECT_EQ(next.program().AwaitExit(), 1) << next.Log();
    EXPECT_THAT(next.Log(), HasSubstr("gmbd is given no thread"));
    met = absl::StrContains(next.Log(), " serving ");
  }
  EXPECT_TRUE(met) << "it was none of these";
  StartBroker(Options());
  ExpectTheWitnessHasAll();
}

}  // namespace
}  // namespace gmb::component
