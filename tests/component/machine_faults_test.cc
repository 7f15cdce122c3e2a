// Each kind of call to the machine fails at its k-th time, or there and for a
// while: each call of a client returns, sessions go on or end, nobody else
// notices, and all is as before.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/component/by_grpc.h"
#include "tests/component/faults_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class MachineFaultsTest : public FaultsFixture {
 protected:
  enum class Cost { kMayEndTheBroker, kMayEndSessions, kNone };

  // For k = 0, 2, 6, ..., until a life has no more such calls; once, and for a
  // while, by turns.
  void Sweep(FaultyCall call, int error, Cost cost = Cost::kMayEndSessions) {
    // A fault that costs nothing need not be waited for.
    const absl::Duration patience =
        cost == Cost::kNone ? kLong : absl::Seconds(1);
    uint64_t met = 0;
    for (uint64_t k = 0; k < 40; k = 2 * k + 2) {
      SCOPED_TRACE(absl::StrCat("call ", static_cast<int>(call), ": ",
                                std::strerror(error), " at ", k));
      const Lived lived = LiveUnder({.call = call,
                                     .error = error,
                                     .first = k,
                                     .count = met % 2 == 0 ? 1U : 4U},
                                    patience);
      EXPECT_TRUE(!lived.ended || cost == Cost::kMayEndTheBroker) << lived.log;
      EXPECT_TRUE(lived.whole || cost != Cost::kNone);
      if (HasFailure() || lived.calls <= k) break;
      ++met;
    }
    EXPECT_GT(met, 0U) << "there are no such calls";
  }
};

TEST_F(MachineFaultsTest, MemoryOfTheKernelIsShort) {
  // Also what allocators of libraries take.
  Sweep(FaultyCall::kMap, ENOMEM, Cost::kMayEndTheBroker);
  Sweep(FaultyCall::kMemoryFile, ENOMEM);
  Sweep(FaultyCall::kSize, ENOMEM);
  Sweep(FaultyCall::kPidfd, ENOMEM);
  Sweep(FaultyCall::kPoll, ENOMEM);
}

TEST_F(MachineFaultsTest, ClientsSockets) {
  Sweep(FaultyCall::kAccept, EAGAIN);
  Sweep(FaultyCall::kAccept, ENOBUFS);
  Sweep(FaultyCall::kSendToPeer, EAGAIN);
  Sweep(FaultyCall::kSendToPeer, EPIPE);
  Sweep(FaultyCall::kSendToPeer, ETOOMANYREFS);
  Sweep(FaultyCall::kReceiveFromPeer, EAGAIN, Cost::kNone);
  Sweep(FaultyCall::kReceiveFromPeer, ECONNRESET);
}

TEST_F(MachineFaultsTest, StreamsOfClients) {
  const ByGrpc by_grpc;
  Sweep(FaultyCall::kSendOnStream, EPIPE);
  Sweep(FaultyCall::kReceiveOnStream, ECONNRESET);
  Sweep(FaultyCall::kReceiveOnStream, ENOMEM);
}

TEST_F(MachineFaultsTest, TheKeepersConnection) {
  Sweep(FaultyCall::kSendToKeeper, EAGAIN, Cost::kNone);
  Sweep(FaultyCall::kSendToKeeper, EPIPE);
  Sweep(FaultyCall::kSendToKeeper, ENOBUFS);
  Sweep(FaultyCall::kReceiveFromKeeper, ECONNRESET);
}

// It is no keeper that is full: the session is kept a little later.
TEST_F(MachineFaultsTest, WhatAKeeperCouldNotBeAskedToKeepIsKeptLater) {
  Arm({.call = FaultyCall::kSendToKeeper, .error = ENOBUFS});
  const auto client = ConnectAs("other");
  ASSERT_NE(client, nullptr);
  EXPECT_GT(Disarm(), 0U);
  EXPECT_TRUE(Await([this] {
    const std::string log = broker().Log();
    return absl::StrContains(log, " keeper_found ") ||
           absl::StrContains(log, " session_not_kept ");
  }));
  Restart();
  EXPECT_TRUE(client->status().ok()) << client->status();
  EXPECT_TRUE(client->Acquire(2 * kMiB, WaitFor(kLong)).ok());
  ExpectTheWitnessHasAll();
}

// At whatever call of an adoption it is: no session ends of it.
TEST_F(MachineFaultsTest, WhatAnAdoptionIsRefusedForAMomentItAsksForAgain) {
  const std::pair<FaultyCall, int> faults[] = {
      {FaultyCall::kMap, ENOMEM}, {FaultyCall::kDuplicate, EMFILE}};
  for (const auto& [call, error] : faults) {
    uint64_t calls = 1;
    for (uint64_t k = 0; k < calls && k < 60; ++k) {
      SCOPED_TRACE(absl::StrCat("call ", static_cast<int>(call), ": ",
                                std::strerror(error), " at ", k));
      KillBroker();
      Arm({.call = call, .error = error, .first = k, .count = 1 + k % 3});
      try {
        StartBroker(Options());
      } catch (const std::runtime_error&) {  // it has ended, in order
        Disarm();
        StartBroker(Options());
      }
      ASSERT_TRUE(Await([this] { return Status().sessions() == 1; }))
          << broker().Log();
      calls = std::max(calls, Disarm());
      ExpectTheWitnessHasAll();
      if (HasFailure()) return;
    }
    EXPECT_GT(calls, 5U) << "there are no such calls";
  }
}

// A host pool of a size that was set: nobody is evicted, and nobody loses.
TEST_F(MachineFaultsTest, WhatTheKernelDoesNotGiveTheHostPoolIsNotUsed) {
  KillBroker();
  Arm({.call = FaultyCall::kPopulate, .error = ENOMEM, .count = 1000});
  StartBroker(Options());
  ASSERT_TRUE(Await([this] { return Status().host_pool().done(); }));
  EXPECT_EQ(Status().host_pool().failed_bytes(), 32 * kMiB);
  EXPECT_THAT(Gmb({"status"}).out,
              HasSubstr("32.00 MiB of the host pool cannot be used"));
  const Lived lived = LiveOnce(absl::Seconds(1));
  EXPECT_TRUE(!lived.whole && !lived.ended) << lived.log;
  // Until a restart.
  Restart();
  EXPECT_TRUE(LiveOnce(kLong).whole);
}

TEST_F(MachineFaultsTest, InterruptedCallsCostNobodyAnything) {
  for (const FaultyCall call :
       {FaultyCall::kAccept, FaultyCall::kPoll, FaultyCall::kEpollWait,
        FaultyCall::kSendToPeer, FaultyCall::kSendOnStream,
        FaultyCall::kReceiveFromPeer, FaultyCall::kReceiveOnStream,
        FaultyCall::kSendToKeeper, FaultyCall::kReceiveFromKeeper}) {
    const bool of_grpc = call == FaultyCall::kSendOnStream ||
                         call == FaultyCall::kReceiveOnStream;
    const auto by_grpc = of_grpc ? std::make_unique<const ByGrpc>() : nullptr;
    Arm({.call = call, .error = EINTR, .first = 1, .count = 8});
    const Lived lived = LiveOnce(kLong);
    EXPECT_TRUE(lived.whole && !lived.ended)
        << "call " << static_cast<int>(call);
    EXPECT_GT(lived.calls, 1U);
  }
}

}  // namespace
}  // namespace gmb::component
