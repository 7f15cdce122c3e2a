// Operators' changes, each part with a core and a store of its own.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "broker/server/admin_clients.h"
#include "broker/server/admin_departures.h"
#include "broker/server/admin_pools.h"
#include "broker/server/tenant_doors.h"
#include "proto/error_status.h"
#include "tests/broker/server/admin_parts_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const Caller kOperator{.is_operator = true, .name = "tester"};

v1::ErrorReason ReasonOf(const absl::Status& status) {
  return proto::ToWireError(status).detail().reason();
}

class AdminPoolsTest : public AdminPartsFixture {
 protected:
  absl::Status Resize(uint64_t bytes) {
    v1::ResizePoolRequest request;
    request.mutable_size()->set_bytes(bytes);
    v1::ResizePoolResponse response;
    return pools_.Resize(Record(), request, &response);
  }
  absl::Status Drain(bool draining) {
    v1::DrainPoolRequest request;
    request.set_draining(draining);
    v1::DrainPoolResponse response;
    return pools_.Drain(Record(), request, &response);
  }

  AdminPools pools_{&core, store_.get(), &not_in_force_};
};

TEST_F(AdminPoolsTest, ASizeIsStoredAndSettlesOneThatWasLeftOut) {
  not_in_force_.Drop(DroppedPool("host-0"), "its size is not.");
  not_in_force_.Drop("host-0", "a tenant's.");
  ASSERT_TRUE(Resize(32 * kMiB).ok());
  v1::GetStatusResponse status;
  not_in_force_.AddTo(&status);
  EXPECT_THAT(status.not_in_force(), ElementsAre("a tenant's."));
  EXPECT_EQ(Pool().target_bytes(), 32 * kMiB);
  EXPECT_TRUE(store_->Shown()->pools.contains("host-0"));
  EXPECT_THAT(Audit(), ElementsAre(StartsWith("resize_pool host-0 by tester")));
}

TEST_F(AdminPoolsTest, ASizeThatIsNotStoredIsNotMade) {
  not_in_force_.Drop(DroppedPool("host-0"), "its size is not.");
  {
    const FullDisk full;
    EXPECT_FALSE(Resize(32 * kMiB).ok());
  }
  EXPECT_EQ(Pool().target_bytes(), 64 * kMiB);
  EXPECT_EQ(not_in_force_.size(), 1U);
}

TEST_F(AdminPoolsTest, APoolIsDrainedAlsoWhereThatCannotBeWritten) {
  ASSERT_TRUE(Drain(true).ok());
  EXPECT_TRUE(Pool().draining());
  {
    const FullDisk full;
    EXPECT_TRUE(Drain(false).ok());
  }
  EXPECT_FALSE(Pool().draining());
  EXPECT_THAT(Audit(), ElementsAre(StartsWith("drain_pool host-0 by tester")));
}

class AdminClientsTest : public AdminPartsFixture {
 protected:
  absl::Status Close(uint64_t session, v1::CloseSessionResponse* response) {
    v1::CloseSessionRequest request;
    request.set_id(session);
    return clients_.CloseSession(Record(), request, response);
  }

  AdminClients clients_{&core, store_.get(), &calls_};
};

TEST_F(AdminClientsTest, ASessionIsClosedAlsoWhereThatCannotBeWritten) {
  InForce("a", 0);
  const auto peer = Connect("a", 4711);
  v1::CloseSessionResponse response;
  {
    const FullDisk full;
    ASSERT_TRUE(Close(peer->session, &response).ok());
  }
  EXPECT_EQ(response.session().tenant(), "a");
  EXPECT_FALSE(core.SessionReport(peer->session).ok());
}

TEST_F(AdminClientsTest, ARecordSaysWhoseSessionItWas) {
  InForce("a", 0);
  const auto peer = Connect("a", 4711);
  v1::CloseSessionResponse response;
  ASSERT_TRUE(Close(peer->session, &response).ok());
  EXPECT_THAT(Audit(),
              ElementsAre(AllOf(StartsWith("close_session a by tester"),
                                HasSubstr("pid 4711"))));
  EXPECT_FALSE(Close(peer->session, &response).ok());
  EXPECT_EQ(Audit().size(), 1U);
}

TEST_F(AdminClientsTest, AReclaimThatCannotBeginIsAnsweredAtOnce) {
  v1::ReclaimRequest request;
  request.set_tenant("nobody");
  v1::ReclaimResponse response;
  std::vector<absl::Status> answers;
  clients_.Reclaim(kOperator, request, &response,
                   [&](const absl::Status& end) { answers.push_back(end); });
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(ReasonOf(answers[0]), v1::NO_SUCH_TENANT);
  EXPECT_THAT(Audit(), IsEmpty());
}

class AdminDeparturesTest : public AdminPartsFixture {
 protected:
  void SetUp() override {
    AdminPartsFixture::SetUp();
    Declare("a", 0);
    InForce("a", 0);
  }
  void TearDown() override { Finish(); }
  absl::Status Door(const std::string& what) {
    doors_moved_.push_back(what);
    return door_;
  }
  bool IsThere() const { return core.GetPolicy("a").ok(); }

  std::vector<std::string> doors_moved_;
  absl::Status door_;
  const TenantDoors doors_{
      .open = [this](const std::string& name) { return Door("open " + name); },
      .close =
          [this](const std::string& name) { return Door("close " + name); }};
  WaitingGuarantees waiting_{&core, store_.get(), &events, &not_in_force_,
                             &calls_};
  AdminDepartures departures_{&core, store_.get(), &doors_, &waiting_, &calls_};
};

TEST_F(AdminDeparturesTest, ATenantGoesWithItsDoorAndAllThatWasLeftOut) {
  not_in_force_.Drop("a", "a has no guarantee.");
  EXPECT_TRUE(departures_.Delete(Record(), "a").ok());
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(doors_moved_, ElementsAre("close a"));
  EXPECT_EQ(not_in_force_.size(), 0U);
  EXPECT_THAT(Audit(), Contains(StartsWith("delete_tenant a by tester")));
}

TEST_F(AdminDeparturesTest, ATenantThatCannotBeDeletedKeepsItsDoor) {
  const auto deletes = [this] { return departures_.Delete(Record(), "a"); };
  {
    const FullDisk full;
    EXPECT_FALSE(deletes().ok());
  }
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(doors_moved_, ElementsAre("close a", "open a"));
  const auto peer = Connect("a");  // it may have sessions again
  EXPECT_EQ(ReasonOf(deletes()), v1::BAD_STATE);
  EXPECT_EQ(doors_moved_.size(), 2U) << "it was not touched";
}

TEST_F(AdminDeparturesTest, ADoorThatDoesNotCloseIsInTheRecord) {
  door_ = absl::InternalError("it sticks");
  EXPECT_TRUE(departures_.Delete(Record(), "a").ok());
  EXPECT_THAT(Audit(), Contains("delete_tenant a by tester: it sticks"));
}

TEST_F(AdminDeparturesTest, WhoLookedBeforeAnothersChangeDeletesNothing) {
  const uint64_t seen = store_->Shown()->next_order;
  Declare("b", 0);
  EXPECT_EQ(ReasonOf(departures_.Delete(Record(), "a", seen)), v1::BAD_STATE);
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(doors_moved_, IsEmpty());
  EXPECT_TRUE(
      departures_.Delete(Record(), "a", store_->Shown()->next_order).ok());
}

TEST_F(AdminDeparturesTest, ATenantIsSeenOffWhenItsSessionsHaveEnded) {
  const auto peer = Connect("a");
  v1::DeleteTenantRequest request;
  request.set_name("a");
  request.mutable_wait()->set_seconds(600);
  std::promise<absl::Status> answer;
  InTurn([&] {
    departures_.SeeOff(kOperator, request, [&](const absl::Status& status) {
      answer.set_value(status);
    });
  });
  EXPECT_TRUE(IsThere());
  core.CloseSession(peer->session, "it ends");
  EXPECT_TRUE(answer.get_future().get().ok());
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(Audit(), AllOf(Contains(StartsWith("see_off_tenant a")),
                             Contains(StartsWith("delete_tenant a"))));
}

TEST_F(AdminDeparturesTest, OneThatDoesNotGoInTimeStaysAndThatIsWritten) {
  const auto peer = Connect("a");
  v1::DeleteTenantRequest request;
  request.set_name("a");
  request.mutable_wait()->set_nanos(1'000'000);
  std::promise<absl::Status> answer;
  InTurn([&] {
    departures_.SeeOff(kOperator, request, [&](const absl::Status& status) {
      answer.set_value(status);
    });
  });
  const absl::Status stays = answer.get_future().get();
  EXPECT_THAT(std::string(stays.message()), HasSubstr("did not end in time"))
      << stays;
  EXPECT_TRUE(IsThere());
  EXPECT_THAT(Audit(), AllOf(Contains(StartsWith("tenant_stays a by tester")),
                             Each(Not(StartsWith("delete_tenant")))));
}

}  // namespace
}  // namespace gmb::broker
