// The client library's shared leases on a real broker: attach, fill once, read
// only, evict and come back.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr uint64_t kBytes = 40 * kMiB;

AttachOptions AttachWithin(absl::Duration wait) {
  AttachOptions options;
  options.wait = wait;
  return options;
}

AcquireOptions Share(const std::string& name, bool keep = false) {
  AcquireOptions options = WaitFor(kLong);
  options.share_as = name;
  options.keep = keep;
  return options;
}

ErrorReason ReasonOf(const absl::Status& status) {
  return GetErrorDetail(status).value_or(ErrorDetail()).reason;
}

bool Holds(const Lease& lease, char value) {
  const char* const bytes = static_cast<const char*>(lease.data());
  return bytes[0] == value &&
         std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
}

// Whether the kernel lets this process write there; if so, it has.
bool Writable(const Lease& lease) {
  const base::UniqueFd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  return read(zero.get(), lease.data(), 1) == 1;
}

class SharedClientTest : public ComponentTest {
 protected:
  void Start() {
    BrokerOptions options;
    options.devices = {"host:256MiB"};
    options.flags = {"--host-pool=256MiB"};
    StartBroker(options);
    MakeTenant("a");
    MakeTenant("b");
  }
  // Parks as soon as it leaves its scopes.
  std::unique_ptr<Client> ConnectWithGate() {
    auto client = ConnectAs("a");
    EXPECT_TRUE(client->TurnGateOn({.park_after = absl::ZeroDuration()}).ok());
    return client;
  }
  // Filled with the value, and sealed.
  static Lease Written(Client& client, const std::string& name, char value,
                       bool keep = false) {
    auto lease = client.Acquire(kBytes, Share(name, keep));
    EXPECT_TRUE(lease.ok()) << lease.status();
    if (!lease.ok()) return {};
    EXPECT_TRUE(lease->Fill(0, static_cast<uint8_t>(value), kBytes).ok());
    EXPECT_TRUE(lease->Seal().ok());
    return *std::move(lease);
  }
  uint64_t Evicted() const {
    v1::GetTenantRequest request;
    request.set_name("a");
    const auto tenant = admin().GetTenant(request);
    return tenant.ok() ? tenant->pools(0).evicted_bytes() : 0;
  }
  // All that can be had of the tenant.
  uint64_t Reclaim() {
    v1::ReclaimRequest request;
    request.set_tenant("a");
    const auto done = admin().Reclaim(request, kLong);
    EXPECT_TRUE(done.ok()) << done.status();
    return done.ok() ? done->reclaimed_bytes() : 0;
  }
  // Also where it comes later than the broker waits for it.
  bool TakesAll() {
    return Await([this] {
      (void)Reclaim();
      return Evicted() == kBytes;
    });
  }
  bool Settles() {
    return Await([this] { return Pool().granted_bytes() == 0; });
  }
};

TEST_F(SharedClientTest, WhatOneWritesTheOthersReadAndItIsChargedOnce) {
  Start();
  const auto writer = ConnectAs("a");
  const auto reader = ConnectAs("a");
  Lease written = Written(*writer, "llm", 'x');
  auto attached = reader->Attach("llm");
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_TRUE(attached->attached());
  EXPECT_EQ(attached->size_bytes(), kBytes);
  EXPECT_TRUE(Holds(*attached, 'x'));
  EXPECT_FALSE(Writable(*attached));
  EXPECT_TRUE(absl::IsFailedPrecondition(attached->Fill(0, 1, 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(attached->Seal()));
  EXPECT_EQ(Pool().granted_bytes(), kBytes);
  EXPECT_EQ((*reader->GetQuota())[0].leased_bytes, kBytes);

  EXPECT_TRUE(std::move(written).Release().ok());
  EXPECT_TRUE(Holds(*attached, 'x')) << "the writer went first";
  EXPECT_TRUE(ConnectAs("a")->Attach("llm").ok());
  EXPECT_TRUE(std::move(*attached).Release().ok());
  EXPECT_TRUE(Settles());
  EXPECT_EQ(ReasonOf(reader->Attach("llm").status()),
            ErrorReason::kNoSuchLease);
}

TEST_F(SharedClientTest, NamesThatAreNotThereOrTakenOrAnothersAreRefused) {
  Start();
  const auto writer = ConnectAs("a");
  const auto reader = ConnectAs("a");
  const auto stranger = ConnectAs("b");
  EXPECT_EQ(ReasonOf(reader->Attach("llm", AttachWithin(kLong)).status()),
            ErrorReason::kNoSuchLease);
  EXPECT_EQ(ReasonOf(reader->Drop("llm")), ErrorReason::kNoSuchLease);
  auto lease = writer->Acquire(kBytes, Share("llm"));
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(ReasonOf(reader->Acquire(kMiB, Share("llm")).status()),
            ErrorReason::kNameTaken);
  EXPECT_EQ(
      ReasonOf(
          reader->Attach("llm", AttachWithin(absl::Milliseconds(50))).status()),
      ErrorReason::kBadState)
      << "it is not sealed";
  EXPECT_EQ(ReasonOf(stranger->Attach("llm").status()),
            ErrorReason::kNoSuchLease);
  ASSERT_TRUE(lease->Seal().ok());
  EXPECT_EQ(ReasonOf(stranger->Attach("llm").status()),
            ErrorReason::kNoSuchLease);
  EXPECT_EQ(ReasonOf(writer->Attach("llm").status()), ErrorReason::kBadState)
      << "this session has it";
  EXPECT_TRUE(stranger->Acquire(kMiB, Share("llm")).ok());
  for (const std::string& name : {std::string(129, 'x'), std::string("a\nb")}) {
    EXPECT_EQ(ReasonOf(writer->Acquire(kMiB, Share(name)).status()),
              ErrorReason::kBadRequest);
  }
  AcquireOptions lost = Share("other");
  lost.contents = Contents::kDiscard;
  EXPECT_EQ(ReasonOf(writer->Acquire(kMiB, lost).status()),
            ErrorReason::kBadRequest);
}

TEST_F(SharedClientTest, KeptItStaysUntilItIsDropped) {
  Start();
  {
    const auto writer = ConnectAs("a");
    Lease lease = Written(*writer, "llm", 'k', /*keep=*/true);
  }
  const auto reader = ConnectAs("a");
  auto attached = reader->Attach("llm", AttachWithin(kLong));
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_TRUE(Holds(*attached, 'k'));
  EXPECT_TRUE(reader->Drop("llm").ok());
  EXPECT_EQ(ReasonOf(ConnectAs("a")->Attach("llm").status()),
            ErrorReason::kNoSuchLease);
  EXPECT_TRUE(Holds(*attached, 'k'));
  EXPECT_TRUE(std::move(*attached).Release().ok());
  EXPECT_TRUE(Settles());
}

TEST_F(SharedClientTest, OfManyAtOnceOneFills) {
  Start();
  constexpr int kSessions = 8;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kSessions; ++i) clients.push_back(ConnectAs("a"));
  std::atomic<int> fills = 0;
  std::vector<std::future<absl::StatusOr<SharedLease>>> started;
  for (const auto& client : clients) {
    started.push_back(std::async(std::launch::async, [&] {
      return client->AttachOrFill("llm", kBytes, WaitFor(kLong),
                                  [&](Lease& lease) {
                                    ++fills;
                                    return lease.Fill(0, 'f', kBytes);
                                  });
    }));
  }
  std::vector<SharedLease> shared;
  for (auto& one : started) {
    auto got = one.get();
    ASSERT_TRUE(got.ok()) << got.status();
    shared.push_back(*std::move(got));
  }
  EXPECT_EQ(fills, 1);
  for (const SharedLease& one : shared) {
    EXPECT_EQ(one.filled, !one.lease.attached());
    EXPECT_TRUE(Holds(one.lease, 'f'));
  }
  EXPECT_EQ(Pool().granted_bytes(), kBytes);
}

TEST_F(SharedClientTest, AFillThatFailsPassesToTheNext) {
  Start();
  constexpr int kSessions = 5;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kSessions; ++i) clients.push_back(ConnectAs("a"));
  std::atomic<int> fills = 0;
  std::vector<std::future<absl::StatusOr<SharedLease>>> started;
  for (const auto& client : clients) {
    started.push_back(std::async(std::launch::async, [&] {
      return client->AttachOrFill("llm", kBytes, WaitFor(kLong),
                                  [&](Lease& lease) -> absl::Status {
                                    if (++fills < 3)
                                      return absl::DataLossError("bad file");
                                    return lease.Fill(0, 'f', kBytes);
                                  });
    }));
  }
  int failed = 0;
  std::vector<SharedLease> shared;  // held until all have one
  for (auto& one : started) {
    auto got = one.get();
    if (got.ok()) {
      EXPECT_TRUE(Holds(got->lease, 'f'));
      shared.push_back(*std::move(got));
    } else {
      EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
      ++failed;
    }
  }
  EXPECT_EQ(fills, 3);
  EXPECT_EQ(failed, 2);
}

TEST_F(SharedClientTest, ItIsTakenWhenAllAreParkedAndComesBackForEach) {
  Start();
  const auto writer = ConnectWithGate();
  const auto reader = ConnectWithGate();
  Lease written = Written(*writer, "llm", 'e');
  auto attached = reader->Attach("llm", AttachWithin(kLong));
  ASSERT_TRUE(attached.ok()) << attached.status();
  void* const address = attached->data();
  {
    auto active = reader->Enter(kLong);
    ASSERT_TRUE(active.ok()) << active.status();
    EXPECT_EQ(Reclaim(), 0U) << "one is active";
    EXPECT_TRUE(Holds(*attached, 'e'));
  }
  ASSERT_TRUE(TakesAll());
  EXPECT_EQ(Evicted(), kBytes);
  {
    auto active = reader->Enter(kLong);
    ASSERT_TRUE(active.ok()) << active.status();
    EXPECT_EQ(attached->data(), address);
    EXPECT_TRUE(Holds(*attached, 'e'));
    EXPECT_FALSE(Writable(*attached)) << "as before";
    EXPECT_EQ(Evicted(), 0U);
  }
  auto active = writer->Enter(kLong);
  ASSERT_TRUE(active.ok()) << active.status();
  EXPECT_TRUE(Holds(written, 'e'));
  EXPECT_EQ(Pool().granted_bytes(), kBytes) << "the same memory";
}

TEST_F(SharedClientTest, WhoAttachesToWhatIsAwayGetsItBack) {
  Start();
  const auto writer = ConnectWithGate();
  Lease written = Written(*writer, "llm", 'a');
  ASSERT_TRUE(TakesAll());
  const auto reader = ConnectWithGate();
  auto attached = reader->Attach("llm", AttachWithin(kLong));
  ASSERT_TRUE(attached.ok()) << attached.status();
  auto active = reader->Enter(kLong);
  ASSERT_TRUE(active.ok()) << active.status();
  EXPECT_TRUE(Holds(*attached, 'a'));
}

TEST_F(SharedClientTest, ThoseWhoWaitAreToldWhenTheWriterEnds) {
  Start();
  auto writer = ConnectAs("a");
  const auto reader = ConnectAs("a");
  auto lease = writer->Acquire(kBytes, Share("llm"));
  ASSERT_TRUE(lease.ok()) << lease.status();
  auto waiting = std::async(std::launch::async, [&] {
    return reader->Attach("llm", AttachWithin(kLong)).status();
  });
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_EQ(ReasonOf(waiting.get()), ErrorReason::kNoSuchLease);
}

}  // namespace
}  // namespace gmb::component
