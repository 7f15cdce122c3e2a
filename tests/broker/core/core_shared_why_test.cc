// Operators see which sessions wait to attach to a shared lease, and why.
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/core/core_shared_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Waits = v1::WaitingAttach;

class CoreSharedWhyTest : public CoreSharedTest {
 protected:
  v1::ExplainResponse Why(const std::string& tenant = "idle") {
    v1::ExplainRequest request;
    request.set_tenant(tenant);
    const auto why = core.Explain(request);
    EXPECT_TRUE(why.ok()) << why.status();
    return why.ok() ? *why : v1::ExplainResponse();
  }
};

TEST_F(CoreSharedWhyTest, WhoWaitsForTheSealIsShownWithTheWriter) {
  PeerIdentity identity;
  identity.program = "trainer";
  identity.pid = 4711;
  const auto writer = Holder("idle", 2 * kMiB, identity);
  const v1::BrokerMessage grant =
      writer->Answer(Acquire(writer.get(), "weights", 10 * kMiB));
  ASSERT_TRUE(grant.has_grant());
  EXPECT_EQ(Why().attaching_size(), 0);
  const auto first = Connect("idle"), second = Connect("idle");
  constexpr int kWait = 3600;
  constexpr int kEarlier = 600;  // far more than the test itself takes
  const uint64_t one = Attach(first.get(), "weights", kWait);
  clock.Advance(std::chrono::seconds(kEarlier));
  Attach(second.get(), "weights", kWait);
  const v1::ExplainResponse why = Why();
  ASSERT_EQ(why.attaching_size(), 2) << why.ShortDebugString();
  EXPECT_EQ(why.attaching(0).session_id(), first->session);
  EXPECT_EQ(why.attaching(1).session_id(), second->session);
  for (const Waits& attach : why.attaching()) {
    EXPECT_EQ(attach.share_name(), "weights");
    EXPECT_EQ(attach.waits_for(), Waits::SEAL);
    EXPECT_EQ(attach.on_session_id(), writer->session);
  }
  EXPECT_GE(why.attaching(0).waited().seconds(), kEarlier);
  EXPECT_LT(why.attaching(1).waited().seconds(), kEarlier);
  EXPECT_LE(why.attaching(0).remaining().seconds(), kWait - kEarlier);
  EXPECT_GT(why.attaching(1).remaining().seconds(), kWait - kEarlier);
  EXPECT_THAT(
      why.findings(),
      Contains(AllOf(
          HasSubstr("2 Attaches wait for the shared lease weights"),
          HasSubstr(absl::StrCat("session ", writer->session,
                                 " (trainer, pid 4711), has not sealed it")),
          HasSubstr("end its process"))));
  EXPECT_EQ(Why("busy").attaching_size(), 0);  // names are the tenant's
  ASSERT_TRUE(Seal(writer.get(), grant.grant().lease_id()).has_sealed());
  EXPECT_TRUE(first->Answer(one).has_grant());
  EXPECT_EQ(Why().attaching_size(), 0);
}

TEST_F(CoreSharedWhyTest, AWriterThatWaitsForItsMemoryIsShownAsThat) {
  const auto holder = Holder("busy", 50 * kMiB);
  v1::ClientMessage acquire;
  acquire.mutable_acquire()->set_bytes(20 * kMiB);
  acquire.mutable_acquire()->set_share_as("weights");
  acquire.mutable_acquire()->mutable_wait()->set_seconds(30);
  const auto writer = Connect("idle");
  const uint64_t request = writer->Send(acquire);
  const auto reader = Connect("idle");
  Attach(reader.get(), "weights", 30);
  v1::ExplainResponse why = Why();
  ASSERT_EQ(why.attaching_size(), 1) << why.ShortDebugString();
  EXPECT_EQ(why.attaching(0).waits_for(), Waits::MEMORY);
  EXPECT_EQ(why.attaching(0).on_session_id(), writer->session);
  ASSERT_EQ(why.waiting_size(), 1);
  EXPECT_EQ(why.waiting(0).session_id(), writer->session);
  holder->Release(lease_);
  ASSERT_TRUE(writer->Answer(request).has_grant());
  why = Why();
  ASSERT_EQ(why.attaching_size(), 1) << why.ShortDebugString();
  EXPECT_EQ(why.attaching(0).waits_for(), Waits::SEAL);
}

TEST_F(CoreSharedWhyTest, WhatIsAwayIsShownWithWhoAsksItBack) {
  const auto [writer, reader, taken] = Away(50 * kMiB);
  writer->Restore(30);
  const auto late = Connect("idle");
  const uint64_t waiting = Attach(late.get(), "weights", 30);
  const v1::ExplainResponse why = Why();
  ASSERT_EQ(why.attaching_size(), 1) << why.ShortDebugString();
  EXPECT_EQ(why.attaching(0).session_id(), late->session);
  EXPECT_EQ(why.attaching(0).waits_for(), Waits::RETURN);
  EXPECT_EQ(why.attaching(0).on_session_id(), writer->session);
  ASSERT_EQ(why.waiting_size(), 1);
  EXPECT_EQ(why.waiting(0).session_id(), writer->session);
  EXPECT_THAT(why.findings(),
              Contains(HasSubstr("1 Attach waits for the shared lease weights: "
                                 "it is evicted, and session")));
  taken.busy->Release(taken.lease);
  Map(writer.get());
  EXPECT_TRUE(late->Answer(waiting).has_grant());
  EXPECT_EQ(Why().attaching_size(), 0);
}

TEST_F(CoreSharedWhyTest, WhatLeavesIsShownAsThat) {
  const auto writer = Writer(20 * kMiB);
  writer->Park();
  const auto busy = Connect("busy");
  busy->Acquire(40 * kMiB, kPatience);
  const v1::Evict evict = writer->AwaitEvict();
  const auto late = Connect("idle");
  Attach(late.get(), "weights", 30);
  const v1::ExplainResponse why = Why();
  ASSERT_EQ(why.attaching_size(), 1) << why.ShortDebugString();
  EXPECT_EQ(why.attaching(0).waits_for(), Waits::RETURN);
  EXPECT_EQ(why.attaching(0).on_session_id(), 0u);
  EXPECT_THAT(why.findings(), Contains(HasSubstr("it is leaving the device")));
  writer->Unmapped(shared_, evict.move());
}

TEST_F(CoreSharedWhyTest, WhatIsPausedForIsShownAsThat) {
  const auto writer = Writer(20 * kMiB);
  EnterScope(writer.get());
  SetTenant("owner", quota::Amount::Bytes(40 * kMiB),
            quota::Amount::Fraction(1));
  const auto owner = Connect("owner");
  owner->Acquire(40 * kMiB, 20);
  EXPECT_TRUE(
      writer->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
          .has_pausing());
  const auto late = Connect("idle");
  GateOn(late.get());
  Attach(late.get(), "weights", 30);
  EXPECT_THAT(Why().findings(), Contains(HasSubstr("are being paused")));
}

}  // namespace
}  // namespace gmb::broker
