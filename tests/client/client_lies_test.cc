// The client library with brokers that lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientLiesTest = test::ClientFaultsTest;

TEST_F(ClientLiesTest, AGrantWithoutSlabsTimesOutAndIsReleased) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  OnAcquire([this](const ClientMessage& message) {
    broker().Say(broker().MakeLease(message, /*send=*/false));
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Acquire(4 * kMiB).status()));
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientLiesTest, SlabsWithoutAGrantTimeOutAndAreClosed) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  OnAcquire(
      [this](const ClientMessage& message) { broker().MakeLease(message); });
  const size_t fds = OpenFds();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Acquire(20 * kMiB).status()));
  EXPECT_TRUE(broker().WaitUntil([&] { return OpenFds() <= fds + 3; }))
      << "but the broker's own";
}

// Once its device is open, a client maps slabs while their grant is on its way.
TEST_F(ClientLiesTest, SlabsMappedBeforeAGrantThatNeverComesGoBack) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  EXPECT_TRUE(InTime([&] { return client->Acquire(2 * kMiB); }).ok());
  ASSERT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  const uint64_t free_bytes = broker().FreeBytes();
  std::promise<v1::BrokerMessage> grant;
  OnAcquire([&](const ClientMessage& message) {
    grant.set_value(broker().MakeLease(message));
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Acquire(20 * kMiB).status()));
  const v1::BrokerMessage late = grant.get_future().get();
  BehaveAgain();
  broker().Say(late);
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  EXPECT_EQ(broker().FreeBytes(), free_bytes) << "nothing is still mapped";
  EXPECT_TRUE(InTime([&] { return client->Acquire(20 * kMiB); }).ok());
}

TEST_F(ClientLiesTest, SlabsMappedBeforeTheSessionEndsAreUnmapped) {
  StartBroker();
  const auto client = ConnectOrDie();
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
  ASSERT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  const uint64_t free_bytes = broker().FreeBytes();
  OnAcquire([&](const ClientMessage& message) {
    (void)broker().MakeLease(message);
    broker().HangUp();
  });
  EXPECT_TRUE(absl::IsUnavailable(client->Acquire(20 * kMiB).status()));
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().FreeBytes() == free_bytes; }));
}

TEST_F(ClientLiesTest, MemoryThatCannotBeMappedIsReleased) {
  StartBroker();
  const auto client = ConnectOrDie();
  OnAcquire([this](const ClientMessage& message) {
    const v1::BrokerMessage grant = broker().MakeLease(message, /*send=*/false);
    v1::BrokerFrame frame;
    v1::Slabs& slabs = *frame.mutable_slabs();
    slabs.set_lease_id(grant.grant().lease_id());
    slabs.set_request_id(message.request_id());
    slabs.set_slabs_in_lease(1);
    slabs.add_slab_bytes(grant.grant().bytes());
    // Shorter than it says, and not sealed: touching it would be a SIGBUS.
    const base::UniqueFd fd(memfd_create("short", MFD_CLOEXEC));
    broker().SendFrame(frame, {fd.get()});
    broker().Say(grant);
  });
  const absl::Status status = client->Acquire(2 * kMiB).status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(GetErrorDetail(status).has_value());
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  BehaveAgain();
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST_F(ClientLiesTest, AGrantOnAnotherDeviceIsReleased) {
  StartBroker();
  const auto client = ConnectOrDie();
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok()) << "opens the device";
  for (const char* asked : {"host-0", ""}) {
    OnAcquire([this](const ClientMessage& message) {
      v1::BrokerMessage grant = broker().MakeLease(message);
      grant.mutable_grant()->set_device("GPU-of-somebody");
      broker().Say(grant);
    });
    AcquireOptions options;
    options.device = asked;
    EXPECT_FALSE(client->Acquire(2 * kMiB, options).ok());
    EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }));
  }
}

// Each frame ends the session, closes every fd in it, and nothing hangs.
TEST_F(ClientLiesTest, BrokenFramesEndTheSession) {
  StartBroker();
  v1::BrokerFrame valid;
  valid.mutable_slabs()->set_lease_id(1);
  valid.mutable_slabs()->set_frame_id(1);
  valid.mutable_slabs()->set_request_id(2);
  valid.mutable_slabs()->set_slabs_in_lease(2);
  valid.mutable_slabs()->add_slab_bytes(2 * kMiB);
  v1::BrokerFrame unknown_request = valid;
  unknown_request.mutable_slabs()->set_request_id(99);
  v1::BrokerFrame challenge;
  challenge.mutable_challenge();
  v1::BrokerFrame refusal;
  *refusal.mutable_refused() =
      proto::ToWireError(proto::MakeError(v1::BAD_STATE, "too slow"));
  struct Case {
    const char* what;
    std::string bytes;
    size_t fds;
  };
  const std::vector<Case> cases = {
      {"garbage", "\xff\xff\xff garbage", 0},
      {"garbage with fds", "\xff\xff\xff garbage", 7},
      {"no fd", valid.SerializeAsString(), 0},
      {"too many fds", valid.SerializeAsString(), 2},
      {"the most fds there can be", valid.SerializeAsString(), 253},
      {"a request that was never made", unknown_request.SerializeAsString(), 1},
      {"a greeting", challenge.SerializeAsString(), 1},
      {"a refusal", refusal.SerializeAsString(), 0},
      {"a truncated frame", valid.SerializeAsString().substr(0, 5), 1},
  };
  const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
  size_t settled = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    {
      const auto client = ConnectOrDie();
      OnAcquire([&](const ClientMessage&) {
        broker().SendBytes(c.bytes, std::vector<int>(c.fds, fd.get()));
      });
      const absl::Status status = client->Acquire(4 * kMiB).status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_FALSE(client->status().ok());
      EXPECT_TRUE(broker().WaitUntil([&] {
        return broker().open_sessions() == 0;
      })) << "the library hangs up";
      BehaveAgain();
    }
    if (settled == 0) settled = OpenFds();
    EXPECT_TRUE(broker().WaitUntil([&] { return OpenFds() <= settled; }))
        << OpenFds();
  }
}

TEST_F(ClientLiesTest, RunningOutOfFileDescriptorsEndsTheSessionAndSaysSo) {
  StartBroker();
  const auto client = ConnectOrDie();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  OnAcquire([&](const ClientMessage& message) {
    v1::BrokerFrame frame;
    frame.mutable_slabs()->set_frame_id(1);
    frame.mutable_slabs()->set_request_id(message.request_id());
    frame.mutable_slabs()->set_slabs_in_lease(100);
    for (int i = 0; i < 100; ++i)
      frame.mutable_slabs()->add_slab_bytes(2 * kMiB);
    const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(fd.get()) + 50;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    broker().SendFrame(frame, std::vector<int>(100, fd.get()));
  });
  const absl::Status status = client->Acquire(200 * kMiB).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

TEST_F(ClientLiesTest, FramesOutOfOrderEndTheSession) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(2 * kMiB);
  OnAcquire([this](const ClientMessage& message) {
    v1::BrokerFrame frame;
    frame.mutable_slabs()->set_frame_id(1);  // a second time
    frame.mutable_slabs()->set_request_id(message.request_id());
    frame.mutable_slabs()->set_slabs_in_lease(1);
    frame.mutable_slabs()->add_slab_bytes(2 * kMiB);
    const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
    broker().SendFrame(frame, {fd.get()});
  });
  const absl::Status status = client->Acquire(2 * kMiB).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("slabs frame 1 after 1"));
}

TEST_F(ClientLiesTest, AWrongAnswerOnTheStreamEndsTheSession) {
  StartBroker();
  const auto client = ConnectOrDie();
  OnAcquire([this](const ClientMessage& message) {
    v1::BrokerMessage answer;
    answer.set_request_id(message.request_id());
    answer.mutable_released()->set_lease_id(1);
    broker().Say(answer);
  });
  const absl::Status status = client->Acquire(2 * kMiB).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("broke the protocol"));
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().open_sessions() == 0; }));
}

TEST_F(ClientLiesTest, UnknownNoticesAreIgnored) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().Say(v1::BrokerMessage());
  v1::BrokerMessage odd;
  odd.mutable_grant()->set_lease_id(5);  // nobody asked
  broker().Say(odd);
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_TRUE(client->status().ok());
}

}  // namespace
}  // namespace gmb
