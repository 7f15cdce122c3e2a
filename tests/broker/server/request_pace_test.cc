// A tenant that asks without end is read at a pace, and others are not.
#include "broker/server/request_pace.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "broker/core/outbox.h"
#include "broker/doors/admission.h"
#include "broker/server/answer_cost.h"
#include "gmb/v1/session.grpc.pb.h"
#include "tests/broker/server/admin_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;

constexpr quota::TenantId kEager{1};
constexpr quota::TenantId kCalm{2};
constexpr RequestPace::Time kDawn{std::chrono::hours(1)};

// How many turns a tenant has at once, at most 100. Takes one more.
int TurnsAtOnce(RequestPace* pace, quota::TenantId tenant,
                RequestPace::Time now) {
  int turns = 0;
  while (turns < 100 && pace->NextTurn(tenant, now) == now) ++turns;
  return turns;
}

TEST(RequestPaceTest, GivesSomeTurnsAtOnceAndThenOneAfterTheOther) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 10);
  EXPECT_EQ(pace.NextTurn(kEager, kDawn), kDawn + milliseconds(20));
  EXPECT_EQ(pace.NextTurn(kEager, kDawn), kDawn + milliseconds(30));
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn + milliseconds(70)), 4);
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn + std::chrono::hours(1)), 10);
}

TEST(RequestPaceTest, AnswersThatCostMuchCountAsFurtherMessages) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  pace.Count(kEager, 80, kDawn);
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 5);
  pace.Count(kEager, 1'000'000, kDawn);
  EXPECT_EQ(pace.NextTurn(kEager, kDawn), kDawn + std::chrono::seconds(1));
  EXPECT_EQ(TurnsAtOnce(&pace, kCalm, kDawn), 10);
}

TEST(RequestPaceTest, ARequestCostsWhatWasLookedAtForIt) {
  EXPECT_EQ(CostOfLooks(0), 0);
  EXPECT_EQ(CostOfLooks(3), 0) << "as little as any";
  EXPECT_EQ(CostOfLooks(4'096), 1'024);
  EXPECT_EQ(CostOfLooks(std::numeric_limits<uint64_t>::max()), 100'000);
}

TEST(RequestPaceTest, ALongMessageCountsAsManyFirstOfTheStreamsTurn) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  uint32_t left = 15;
  EXPECT_EQ(pace.CountBytes(kEager, 127, &left, kDawn), 0U);
  EXPECT_EQ(left, 15U);
  EXPECT_EQ(pace.CountBytes(kEager, 3 * 128, &left, kDawn), 3U);
  EXPECT_EQ(left, 12U);
  EXPECT_EQ(pace.CountBytes(kEager, 60 * 128, &left, kDawn), 60U);
  EXPECT_EQ(left, 0U);
  // 48 of the tenant's 160 are gone.
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 7);
  EXPECT_EQ(TurnsAtOnce(&pace, kCalm, kDawn), 10);
}

// Streams that come and go put off no other one of their tenant.
TEST(RequestPaceTest, WhatAStreamLeavesUnreadIsItsTenantsAgain) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 10);
  for (int i = 0; i < 1000; ++i) {
    pace.GiveBack(kEager, RequestPace::kTurn, kDawn);
    EXPECT_EQ(pace.NextTurn(kEager, kDawn), kDawn + milliseconds(10));
  }
  // More than it ever had is not had by that.
  pace.GiveBack(kEager, 1'000'000, kDawn);
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 10);
}

TEST(RequestPaceTest, EachTenantHasItsOwnTurns) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  EXPECT_EQ(TurnsAtOnce(&pace, kEager, kDawn), 10);
  EXPECT_EQ(TurnsAtOnce(&pace, kCalm, kDawn), 10);
}

TEST(RequestPaceTest, TenantsThatComeAndGoAreForgottenAndOthersAreNot) {
  RequestPace pace({.at_once = 160, .a_second = 1600});
  for (int i = 0; i < 20; ++i) pace.Count(kEager, 1600, kDawn);
  RequestPace::Time now = kDawn;
  for (uint64_t id = 10; id < 10'000; ++id) {
    now += std::chrono::microseconds(50);
    (void)pace.NextTurn({id}, now);
  }
  EXPECT_EQ(pace.NextTurn(kEager, now), kDawn + std::chrono::seconds(1));
  // A turn of 16 takes 10 ms: 200 tenants of the last moments may be known.
  EXPECT_LE(pace.tenants(), 4 * RequestPace::kFirstForgotten * 2);
}

// Over the real service.
class PacedStreamsTest : public AdminFixture {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::ClientMessage, v1::BrokerMessage>;
  struct Client {
    std::unique_ptr<v1::SessionService::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };

  // A session of this process, by a door of the tenant's.
  std::unique_ptr<Client> Connect(const std::string& tenant) {
    const Door door{.origin = Origin::kTenantDirectory, .tenant = tenant};
    const std::string path = directory_ / (tenant + ".sock");
    EXPECT_TRUE(gateway_->AddDoor(path, 0600, door).ok());
    PeerIdentity peer;
    peer.origin = door.origin;
    peer.tenant_directory = tenant;
    peer.pid = ::getpid();
    const OpenedSession opened = core.OpenSession(peer).value();
    sessions.push_back(opened.id);
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const base::UniqueFd ends[] = {base::UniqueFd(pair[0]),
                                   base::UniqueFd(pair[1])};
    admission_.Add(opened.id, door, ConnectedProcess(pair[0]).value(), tenant);
    auto client = std::make_unique<Client>();
    // Messages that are not read yet stay with the broker.
    grpc::ChannelArguments little;
    little.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024);
    little.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    client->stub = v1::SessionService::NewStub(grpc::CreateCustomChannel(
        "unix:" + path, grpc::InsecureChannelCredentials(), little));
    client->context.AddMetadata("gmb-session-bin", opened.token);
    client->stream = client->stub->Session(&client->context);
    return client;
  }
  static bool Ask(Client* client, uint64_t id) {
    v1::ClientMessage ask;
    ask.set_request_id(id);
    ask.mutable_get_quota();
    return client->stream->Write(ask);
  }
  static bool Answered(Client* client, uint64_t id) {
    v1::BrokerMessage answer;
    return client->stream->Read(&answer) && answer.request_id() == id;
  }
  void ExpectAnswersToTheEnd(const std::string& tenant, uint64_t questions) {
    const auto client = Connect(tenant);
    for (uint64_t id = 1; id <= questions; ++id)
      ASSERT_TRUE(Ask(client.get(), id));
    EXPECT_TRUE(client->stream->WritesDone());
    for (uint64_t id = 1; id <= questions; ++id)
      ASSERT_TRUE(Answered(client.get(), id)) << id;
    v1::BrokerMessage none;
    EXPECT_FALSE(client->stream->Read(&none));
    EXPECT_TRUE(client->stream->Finish().ok());
  }
};

class StoppedTenantTest : public PacedStreamsTest {
 protected:
  [[nodiscard]] RequestPace::Options Pace() const override {
    return {.at_once = 256, .a_second = 0.001};
  }
};

TEST_F(StoppedTenantTest, IsReadNoFurtherAndAnotherOneIs) {
  constexpr uint64_t kMany = 2000;
  const auto eager = Connect("busy");
  for (uint64_t id = 1; id <= kMany; ++id) ASSERT_TRUE(Ask(eager.get(), id));
  std::atomic<uint64_t> answered = 0;
  std::thread reads([&] {
    while (Answered(eager.get(), answered + 1)) ++answered;
  });
  const auto calm = Connect("idle");
  for (uint64_t id = 1; id <= 64; ++id) {
    EXPECT_TRUE(Ask(calm.get(), id) && Answered(calm.get(), id));
  }
  EXPECT_TRUE(AwaitPool([&](const auto& /*pool*/) { return answered > 0; }))
      << answered;
  eager->context.TryCancel();
  reads.join();
  EXPECT_FALSE(eager->stream->Finish().ok());
  EXPECT_TRUE(calm->stream->WritesDone() && calm->stream->Finish().ok());
  EXPECT_LE(answered, 256U);
}

// Both kinds of streams count: here gRPC's. A message of 2,000 bytes is as 16.
TEST_F(StoppedTenantTest, IsReadNoFurtherSoonerIfItsMessagesAreLong) {
  const auto eager = Connect("busy");
  v1::ClientMessage longer;
  longer.mutable_set_trimmable()->add_devices()->set_device(
      std::string(2000, 'x'));
  for (uint64_t id = 1; id <= 30; ++id) {
    ASSERT_TRUE(eager->stream->Write(longer));
    ASSERT_TRUE(Ask(eager.get(), id));
  }
  std::atomic<uint64_t> answered = 0;
  std::thread reads([&] {
    while (Answered(eager.get(), answered + 1)) ++answered;
  });
  EXPECT_TRUE(AwaitPool([&](const auto& /*pool*/) { return answered > 0; }));
  const auto calm = Connect("idle");
  for (uint64_t id = 1; id <= 64; ++id) {
    EXPECT_TRUE(Ask(calm.get(), id) && Answered(calm.get(), id));
  }
  eager->context.TryCancel();
  reads.join();
  EXPECT_FALSE(eager->stream->Finish().ok());
  EXPECT_TRUE(calm->stream->WritesDone() && calm->stream->Finish().ok());
  EXPECT_LE(answered, 20U);
}

class PacedTenantTest : public PacedStreamsTest {
 protected:
  [[nodiscard]] RequestPace::Options Pace() const override {
    return {.at_once = 64, .a_second = 6400};
  }
};

TEST_F(PacedTenantTest, IsAnsweredToTheEndAllTheSame) {
  ExpectAnswersToTheEnd("busy", 1000);
}

// At the default pace: all is read before the first answer is.
TEST_F(PacedStreamsTest, AnswersThatWaitAreWrittenAfterTheLastQuestion) {
  ExpectAnswersToTheEnd("busy", Outbox::kManyMessages);
}

}  // namespace
}  // namespace gmb::broker
