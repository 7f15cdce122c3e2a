// Shared leases as programs see them, and what goes over the wire for them.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_gate_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientSharedTest = test::ClientGateTest;

constexpr uint64_t kBytes = test::FakeBroker::kSharedBytes;

bool Holds(const Lease& lease, char value) {
  const char* const bytes = static_cast<const char*>(lease.data());
  return bytes[0] == value &&
         std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
}

// Whether this process may write there, as the kernel sees it.
bool Writable(const Lease& lease, uint64_t offset) {
  const base::UniqueFd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  return read(zero.get(), static_cast<char*>(lease.data()) + offset, 1) == 1;
}

bool Writable(const Lease& lease) {
  return Writable(lease, 0) || Writable(lease, lease.size_bytes() - 1);
}

AttachOptions WaitFor(absl::Duration wait) {
  AttachOptions options;
  options.wait = wait;
  return options;
}

absl::Status No(v1::ErrorReason reason) {
  return proto::MakeError(reason, "not now: look again");
}

TEST_F(ClientSharedTest, WhatIsAttachedIsMappedForReading) {
  StartBroker();
  const auto client = ConnectOrDie();
  for (const bool device_is_open : {false, true}) {
    absl::StatusOr<Lease> lease = client->Attach("llm", WaitFor(kWait));
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(lease->attached());
    EXPECT_EQ(lease->size_bytes(), kBytes);
    EXPECT_TRUE(Holds(*lease, test::FakeBroker::kSharedByte));
    EXPECT_FALSE(Writable(*lease)) << device_is_open;
    EXPECT_TRUE(std::move(*lease).Release().ok());
  }
  EXPECT_EQ(broker().Count(ClientMessage::kAttach), 2);
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_attach()) {
      EXPECT_EQ(message.attach().name(), "llm");
    }
  }
  EXPECT_EQ(broker().leases(), 0);
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

TEST_F(ClientSharedTest, WritingToItThroughTheLibraryIsRefused) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Attach("llm");
  char byte = 0;
  for (const absl::Status& refused :
       {lease.Fill(0, 1, 1), lease.CopyFromHost(0, &byte, 1), lease.Seal()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("attached"));
  }
  EXPECT_TRUE(lease.CopyToHost(&byte, kBytes - 1, 1).ok());
  EXPECT_EQ(byte, test::FakeBroker::kSharedByte);
  EXPECT_EQ(broker().Count(ClientMessage::kSeal), 0);
  EXPECT_FALSE(Lease().attached());
  EXPECT_FALSE(client->Acquire(kMiB)->attached());
}

TEST_F(ClientSharedTest, ItComesBackForReadingAtItsAddress) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Attach("llm");
  void* const address = lease.data();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  ASSERT_TRUE(Close());
  broker().Evict(lease.id(), 1);
  ASSERT_TRUE(AwaitMoved(1));
  broker().DropSlabs(lease.id());
  broker().Say(broker().SendSlabs(lease.id(), 2, kBytes, 'b'));
  ASSERT_TRUE(AwaitMoved(2));
  ASSERT_TRUE(Reopen());
  EXPECT_EQ(lease.data(), address);
  EXPECT_TRUE(Holds(lease, 'b'));
  EXPECT_FALSE(Writable(lease));
}

TEST_F(ClientSharedTest, NamesAndKeepGoOverTheWire) {
  StartBroker();
  const auto client = ConnectOrDie();
  AcquireOptions options;
  options.share_as = "llm";
  options.keep = true;
  Lease lease = *client->Acquire(kBytes, options);
  EXPECT_FALSE(lease.attached());
  EXPECT_TRUE(Writable(lease));
  EXPECT_TRUE(lease.Seal().ok());
  EXPECT_TRUE(client->Drop("llm").ok());
  const std::vector<ClientMessage> messages = broker().messages();
  const ClientMessage& last = messages.back();
  EXPECT_EQ(last.drop().name(), "llm");
  for (const ClientMessage& message : messages) {
    if (!message.has_acquire()) continue;
    EXPECT_EQ(message.acquire().share_as(), "llm");
    EXPECT_TRUE(message.acquire().keep());
  }
}

TEST_F(ClientSharedTest, ARefusalCarriesItsReason) {
  StartBroker();
  const auto client = ConnectOrDie();
  const auto refuse = [this](v1::ErrorReason reason) {
    broker().OnMessage([this, reason](const ClientMessage& message) {
      broker().Refuse(message, No(reason));
    });
  };
  refuse(v1::NO_SUCH_LEASE);
  EXPECT_EQ(GetErrorDetail(client->Attach("x").status())->reason,
            ErrorReason::kNoSuchLease);
  EXPECT_TRUE(absl::IsNotFound(client->Drop("x")));
  refuse(v1::NAME_TAKEN);
  const absl::Status taken = client->Acquire(kMiB).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_EQ(GetErrorDetail(taken)->reason, ErrorReason::kNameTaken);
  EXPECT_EQ(ErrorReasonName(ErrorReason::kNameTaken), "NAME_TAKEN");
}

// --- The stream breaks, or the broker is late.

TEST_F(ClientSharedTest, AWaitingAttachSurvivesABrokenStream) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::atomic<int> asked = 0;
  On(ClientMessage::kAttach, [&](const ClientMessage& message) {
    if (++asked == 1) {
      broker().BreakStream();
    } else {
      EXPECT_EQ(message.attach().name(), "llm");
      broker().Serve(message);
    }
  });
  EXPECT_TRUE(client->Attach("llm").ok());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(broker().streams(), 2);
}

TEST_F(ClientSharedTest, AGrantThatComesTooLateGoesBack) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  On(ClientMessage::kAttach, [](const ClientMessage&) {});
  const absl::Status late = client->Attach("llm").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kCancel) == 1; }));
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_attach()) broker().Serve(message);
  }
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  EXPECT_EQ(broker().Count(ClientMessage::kRelease), 1);
  broker().OnMessage(nullptr);
  EXPECT_TRUE(client->Attach("llm", WaitFor(kWait)).ok())
      << "the session lives";
}

TEST_F(ClientSharedTest, AWaitingAttachCanBeWithdrawn) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::stop_source stop;
  std::atomic<uint64_t> id = 0;
  broker().OnMessage([&](const ClientMessage& message) {
    if (message.has_attach()) {
      id = message.request_id();
      stop.request_stop();
    } else if (message.has_cancel()) {
      EXPECT_EQ(message.cancel().acquire_request_id(), id);
      ClientMessage attach;
      attach.set_request_id(id);
      broker().Refuse(attach, No(v1::CANCELLED_BY_CLIENT));
    }
  });
  AttachOptions options = WaitFor(absl::Hours(1));
  options.cancel = stop.get_token();
  const absl::Status withdrawn = client->Attach("llm", options).status();
  EXPECT_TRUE(absl::IsCancelled(withdrawn)) << withdrawn;
}

TEST_F(ClientSharedTest, HowManyAreAheadIsHeard) {
  StartBroker();
  const auto client = ConnectOrDie();
  On(ClientMessage::kAttach, [this](const ClientMessage& message) {
    v1::BrokerMessage waiting;
    waiting.set_request_id(message.request_id());
    waiting.mutable_waiting()->set_ahead(3);
    broker().Say(waiting);
  });
  AttachOptions options = WaitFor(kWait);
  std::vector<uint64_t> heard;
  options.on_waiting = [&](uint64_t ahead) {
    heard.push_back(ahead);
    for (const ClientMessage& message : broker().messages()) {
      if (message.has_attach()) broker().Serve(message);
    }
  };
  EXPECT_TRUE(client->Attach("llm", options).ok());
  EXPECT_THAT(heard, testing::ElementsAre(3));
}

// --- A broker that lies.

TEST_F(ClientSharedTest, AGrantOfTheOtherKindEndsTheSession) {
  StartBroker();
  for (const bool attach : {true, false}) {
    const auto client = ConnectOrDie();
    broker().OnMessage([&](const ClientMessage& message) {
      if (!message.has_attach() && !message.has_acquire()) {
        broker().Serve(message);
        return;
      }
      v1::BrokerMessage grant = broker().MakeLease(message);
      grant.mutable_grant()->set_attached(!grant.grant().attached());
      broker().Say(grant);
    });
    const absl::Status over = attach ? client->Attach("llm").status()
                                     : client->Acquire(kMiB).status();
    EXPECT_TRUE(absl::IsUnavailable(over)) << over;
    EXPECT_THAT(std::string(over.message()), HasSubstr("protocol"));
    broker().OnMessage(nullptr);
  }
}

TEST_F(ClientSharedTest, AnAnswerAboutAnotherNameEndsTheSession) {
  StartBroker();
  const auto client = ConnectOrDie();
  On(ClientMessage::kDrop, [this](const ClientMessage& message) {
    v1::BrokerMessage dropped;
    dropped.set_request_id(message.request_id());
    dropped.mutable_dropped()->set_name("another");
    broker().Say(dropped);
  });
  EXPECT_TRUE(absl::IsUnavailable(client->Drop("llm")));
}

// --- The session that fills it.

TEST_F(ClientSharedTest, WhoIsThereAttachesAndFillsNothing) {
  StartBroker();
  const auto client = ConnectOrDie();
  const absl::StatusOr<SharedLease> shared =
      client->AttachOrFill("llm", kBytes, {}, [](Lease&) -> absl::Status {
        throw std::logic_error("nobody is to fill it");
      });
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_FALSE(shared->filled);
  EXPECT_TRUE(shared->lease.attached());
}

TEST_F(ClientSharedTest, TheFirstAcquiresFillsInAScopeAndSeals) {
  StartBroker();
  const auto client = ConnectOrDie();
  ASSERT_TRUE(client->TurnGateOn(AtOnce()).ok());
  On(ClientMessage::kAttach, [this](const ClientMessage& message) {
    broker().Refuse(message, No(v1::NO_SUCH_LEASE));
  });
  const absl::StatusOr<SharedLease> shared =
      client->AttachOrFill("llm", kBytes, {}, [this](Lease& lease) {
        EXPECT_EQ(Word().scopes(), 1U);
        EXPECT_EQ(broker().Count(ClientMessage::kSeal), 0);
        return lease.Fill(0, 'f', lease.size_bytes());
      });
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->filled);
  EXPECT_FALSE(shared->lease.attached());
  EXPECT_TRUE(Holds(shared->lease, 'f'));
  EXPECT_EQ(broker().Count(ClientMessage::kSeal), 1);
}

TEST_F(ClientSharedTest, ItTakesOverFromAWriterThatFailed) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::atomic<int> attaches = 0;
  std::atomic<int> acquires = 0;
  broker().OnMessage([&](const ClientMessage& message) {
    if (message.has_attach()) {  // none; its writer ends; and none again
      ++attaches;
      broker().Refuse(message, No(v1::NO_SUCH_LEASE));
    } else if (message.has_acquire() && ++acquires < 3) {
      broker().Refuse(message, No(v1::NAME_TAKEN));
    } else {
      broker().Serve(message);
    }
  });
  AcquireOptions options;
  options.wait = kWait;
  const absl::StatusOr<SharedLease> shared = client->AttachOrFill(
      "llm", kBytes, options, [](Lease&) { return absl::OkStatus(); });
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_TRUE(shared->filled);
  EXPECT_EQ(attaches, 3);
  EXPECT_EQ(acquires, 3);
}

TEST_F(ClientSharedTest, WithoutTimeItIsToldWhatStandsInTheWay) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().OnMessage([this](const ClientMessage& message) {
    broker().Refuse(
        message, No(message.has_attach() ? v1::NO_SUCH_LEASE : v1::NAME_TAKEN));
  });
  const auto fill = [](Lease&) { return absl::OkStatus(); };
  for (const absl::Duration wait :
       {absl::ZeroDuration(), absl::Milliseconds(50)}) {
    AcquireOptions options;
    options.wait = wait;
    EXPECT_TRUE(absl::IsAlreadyExists(
        client->AttachOrFill("llm", kBytes, options, fill).status()));
  }
  broker().OnMessage([this](const ClientMessage& message) {
    broker().Refuse(message, No(v1::BAD_STATE));
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client->AttachOrFill("llm", kBytes, {}, fill).status()));
}

TEST_F(ClientSharedTest, AFailedFillGivesTheLeaseBackUnsealed) {
  StartBroker();
  const auto client = ConnectOrDie();
  On(ClientMessage::kAttach, [this](const ClientMessage& message) {
    broker().Refuse(message, No(v1::NO_SUCH_LEASE));
  });
  const absl::Status failed =
      client
          ->AttachOrFill("llm", kBytes, {},
                         [](Lease&) { return absl::DataLossError("bad file"); })
          .status();
  EXPECT_TRUE(absl::IsDataLoss(failed)) << failed;
  const absl::Status thrown =
      client
          ->AttachOrFill("llm", kBytes, {},
                         [](Lease&) -> absl::Status {
                           throw std::runtime_error("bad disk");
                         })
          .status();
  EXPECT_TRUE(absl::IsInternal(thrown)) << thrown;
  EXPECT_THAT(std::string(thrown.message()), HasSubstr("bad disk"));
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  EXPECT_EQ(broker().Count(ClientMessage::kSeal), 0);
}

TEST_F(ClientSharedTest, ALeaseThatCannotBeSealedGoesBack) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().OnMessage([this](const ClientMessage& message) {
    if (message.has_attach()) {
      broker().Refuse(message, No(v1::NO_SUCH_LEASE));
    } else if (message.has_seal()) {
      broker().Refuse(message, No(v1::BAD_STATE));
    } else {
      broker().Serve(message);
    }
  });
  const absl::Status refused =
      client
          ->AttachOrFill("llm", kBytes, {},
                         [](Lease&) { return absl::OkStatus(); })
          .status();
  EXPECT_EQ(GetErrorDetail(refused)->reason, ErrorReason::kBadState);
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
}

TEST_F(ClientSharedTest, AnotherLeaseOfThatNameIsRefusedAndGivenBack) {
  StartBroker();
  const auto client = ConnectOrDie();
  const auto fill = [](Lease&) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client->AttachOrFill("llm", kBytes + 1, {}, fill).status()));
  AcquireOptions elsewhere;
  elsewhere.device = "host-1";
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client->AttachOrFill("llm", kBytes, elsewhere, fill).status()));
  AcquireOptions renamed;
  renamed.share_as = "other";
  EXPECT_TRUE(absl::IsInvalidArgument(
      client->AttachOrFill("llm", kBytes, renamed, fill).status()));
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
}

}  // namespace
}  // namespace gmb
