// Clients that do not read or do not answer: each loses its own session in
// time, and others are served as if they were not there.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

class SilentClientsTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    for (const std::string name : {"a", "b", "c", "d"}) MakeTenant(name);
    before_ = Settle();
  }
  void TearDown() override {
    ExpectServed("b");
    ExpectBackTo(before_);
    ComponentTest::TearDown();
  }
  [[nodiscard]] bool HasEnded(const RawSession& session) const {
    const auto list = admin().ListSessions(v1::ListSessionsRequest());
    if (!list.ok()) return false;
    for (const v1::SessionInfo& info : list->sessions()) {
      if (info.id() == session.welcome.session_id()) return false;
    }
    return true;
  }

  Footprint before_;
};

TEST_F(SilentClientsTest, OneThatDoesNotReadItsStreamIsReadNoFurther) {
  constexpr uint64_t kMany = 100'000;
  const auto watch = StartGmb("watch", {"watch"});
  RawSession session = RawSession::Open(TenantDir("a")).value();
  const auto stream = session.OpenStream(TenantDir("a"));
  const uint64_t resident = broker().ResidentBytes();
  std::atomic<uint64_t> asked = 0;
  std::thread asks([&] {
    v1::ClientMessage ask;
    ask.mutable_get_quota();
    do {
      ask.set_request_id(asked + 1);
    } while (stream->Send(ask) && ++asked < kMany);
  });
  uint64_t before = 0;
  EXPECT_TRUE(Await([&] {  // it waits for the broker
    ExpectServed("b");
    return std::exchange(before, asked) == asked && asked > 0;
  }));
  EXPECT_LT(asked, kMany);
  EXPECT_FALSE(HasEnded(session)) << watch->Out();
  if (!kInstrumented) {
    EXPECT_LT(broker().ResidentBytes(), resident + 16 * kMiB);
  }
  // All is answered once it reads.
  uint64_t answered = 0;
  while (answered < kMany) {
    const auto answer = stream->Receive();
    if (!answer.has_value() || answer->request_id() != answered + 1) break;
    ++answered;
  }
  asks.join();
  EXPECT_EQ(answered, kMany);
}

// Its messages have no answers, so that none lets it cut a message once more.
TEST_F(SilentClientsTest, WhoSpeaksFasterThanItIsReadKeepsItsSession) {
  constexpr uint64_t kMany = 60'000;
  const auto watch = StartGmb("watch", {"watch"});
  RawSession session = RawSession::Open(TenantDir("a")).value();
  const auto stream = session.OpenStream(TenantDir("a"));
  for (uint64_t i = 1; i <= kMany; ++i) {
    v1::ClientMessage notice;
    notice.mutable_unmapped()->set_lease_id(i);
    notice.mutable_unmapped()->set_move(i);
    ASSERT_TRUE(stream->Send(notice)) << i << " " << watch->Out();
  }
  EXPECT_FALSE(HasEnded(session)) << watch->Out();
}

TEST_F(SilentClientsTest, AProgramThatReportsWithoutEndKeepsItsSession) {
  constexpr uint64_t kMany = 200'000;
  const auto watch = StartGmb("watch", {"watch"});
  const auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  for (uint64_t i = 1; i <= kMany; ++i)
    ASSERT_TRUE(client->SetTrimmable("", i).ok()) << i << " " << watch->Out();
  EXPECT_TRUE(client->Acquire(2 * kMiB, WaitFor(absl::Seconds(30))).ok())
      << watch->Out();
}

// The broker waits 10 s for an acknowledgement: all who owe one at once.
TEST_F(SilentClientsTest, ThoseWhoNeverAcknowledgeAreEndedInTime) {
  const auto watch = StartGmb("watch", {"watch"});
  RawSession mute = RawSession::Open(TenantDir("a")).value();
  const auto mutes = mute.OpenStream(TenantDir("a"));
  mutes->Send(AcquireMessage(1, 4 * kMiB));
  ASSERT_TRUE(mutes->ReceiveAnswer(1).has_value());

  RawSession deaf = RawSession::Open(TenantDir("c")).value();
  const auto deafs = deaf.OpenStream(TenantDir("c"));
  for (uint64_t id = 1; id <= 30; ++id)
    deafs->Send(AcquireMessage(id, 2 * kMiB));

  // Has what it leased announced, releases it, and still owes its answer.
  RawSession owing = RawSession::Open(TenantDir("d")).value();
  const auto owings = owing.OpenStream(TenantDir("d"));
  owings->Send(AcquireMessage(1, 64 * kMiB));
  const auto grant = owings->ReceiveAnswer(1);
  ASSERT_TRUE(grant.has_value() && grant->has_grant());
  owings->Send(ReleaseMessage(2, grant->grant().lease_id()));
  const absl::Time start = absl::Now();

  absl::Duration slowest;
  const bool ended = Await([&] {
    const absl::Time asked = absl::Now();
    ExpectServed("b");
    slowest = std::max(slowest, absl::Now() - asked);
    return HasEnded(mute) && HasEnded(deaf) && HasEnded(owing);
  });
  EXPECT_TRUE(ended);
  EXPECT_GT(absl::Now() - start, absl::Seconds(9));
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_LT(slowest, absl::Seconds(8)) << "others are served meanwhile";
  // The log holds lines of clients back when there are many; events are not.
  EXPECT_TRUE(watch->AwaitOut("did not acknowledge")) << watch->Out();
  EXPECT_TRUE(absl::IsUnavailable(mutes->Finish()));
  EXPECT_TRUE(absl::IsUnavailable(deafs->Finish()));
}

TEST_F(SilentClientsTest, OneThatIsSilentAndDiesGivesEverythingBackAtOnce) {
  const absl::Time start = absl::Now();
  {
    RawSession session = RawSession::Open(TenantDir("a")).value();
    const auto stream = session.OpenStream(TenantDir("a"));
    stream->Send(AcquireMessage(1, 128 * kMiB));
    ASSERT_TRUE(stream->ReceiveAnswer(1).has_value());
  }
  ExpectBackTo(before_);
  EXPECT_LT(absl::Now() - start, absl::Seconds(9));
}

TEST_F(SilentClientsTest, ASessionMayAskForNothingForEver) {
  const RawSession idle = RawSession::Open(TenantDir("a")).value();
  const auto stream = idle.OpenStream(TenantDir("a"));
  for (int i = 0; i < 20; ++i) ExpectServed("b");
  EXPECT_FALSE(HasEnded(idle));
}

}  // namespace
}  // namespace gmb::component
