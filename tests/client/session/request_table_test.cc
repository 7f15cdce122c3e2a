#include "client/session/request_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "gmb/error.h"

namespace gmb::internal {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

v1::ClientMessage AcquireMessage(uint64_t bytes = 4 * kMiB) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(bytes);
  return message;
}

v1::ClientMessage QuotaMessage() {
  v1::ClientMessage message;
  message.mutable_get_quota();
  return message;
}

v1::ClientMessage ReleaseMessage(uint64_t lease_id) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  return message;
}

v1::ClientMessage MappedMessage(uint64_t lease_id) {
  v1::ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease_id);
  return message;
}

v1::BrokerMessage GrantMessage(uint64_t request_id, uint64_t bytes = 4 * kMiB,
                               uint32_t slabs = 2) {
  v1::BrokerMessage message;
  message.set_request_id(request_id);
  message.mutable_grant()->set_lease_id(70);
  message.mutable_grant()->set_bytes(bytes);
  message.mutable_grant()->set_slabs(slabs);
  return message;
}

// Two slabs of 2 MiB, all of lease 70.
v1::Slabs SlabsFrame(uint64_t request_id) {
  v1::Slabs frame;
  frame.set_lease_id(70);
  frame.set_request_id(request_id);
  frame.set_slabs_in_lease(2);
  frame.add_slab_bytes(2 * kMiB);
  frame.add_slab_bytes(2 * kMiB);
  return frame;
}

// File descriptors whose closing can be seen.
std::vector<base::UniqueFd> Fds(int count,
                                std::vector<int>* numbers = nullptr) {
  std::vector<base::UniqueFd> fds;
  for (int i = 0; i < count; ++i) {
    fds.emplace_back(memfd_create("slab", MFD_CLOEXEC));
    if (numbers != nullptr) numbers->push_back(fds.back().get());
  }
  return fds;
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

std::vector<uint64_t> WriteAll(RequestTable& table) {
  std::vector<uint64_t> ids;
  while (const v1::ClientMessage* next = table.NextToWrite())
    ids.push_back(next->request_id());
  return ids;
}

TEST(RequestTableTest, AGrantIsNewsToItsCallOnceItsSlabsAreThere) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  EXPECT_FALSE(table.HasNews(id));
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  EXPECT_FALSE(table.HasNews(id)) << "a grant without its slabs";
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  EXPECT_TRUE(table.HasNews(id));
  ASSERT_TRUE(table.TakeAnswer(id).has_value());
  EXPECT_FALSE(table.HasNews(id));
}

TEST(RequestTableTest, IdsRiseFromOneAndAreWrittenOnce) {
  RequestTable table;
  EXPECT_EQ(table.AddRequest(QuotaMessage()), 1U);
  EXPECT_EQ(table.AddRequest(AcquireMessage()), 2U);
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(1, 2));
  EXPECT_THAT(WriteAll(table), testing::IsEmpty());
  EXPECT_EQ(table.AddRequest(ReleaseMessage(70)), 3U);
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(3));
}

TEST(RequestTableTest, GrantAndSlabsMeetInEitherOrder) {
  for (const bool grant_first : {true, false}) {
    RequestTable table;
    const uint64_t id = table.AddRequest(AcquireMessage());
    if (grant_first) {
      ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
      EXPECT_FALSE(table.TakeAnswer(id).has_value());
      ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
    } else {
      ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
      EXPECT_FALSE(table.TakeAnswer(id).has_value());
      ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
    }
    auto answer = table.TakeAnswer(id);
    ASSERT_TRUE(answer.has_value());
    ASSERT_TRUE(answer->ok());
    auto& granted = std::get<Granted>(**answer);
    EXPECT_EQ(granted.grant.lease_id(), 70U);
    EXPECT_EQ(granted.slabs.TakeHandles().size(), 2U);
    EXPECT_THAT(granted.slabs.slab_bytes(),
                testing::ElementsAre(2 * kMiB, 2 * kMiB));
    EXPECT_FALSE(table.TakeAnswer(id).has_value()) << "an answer is taken once";
  }
}

TEST(RequestTableTest, OnlyTheUnansweredIsRepeatedAfterABreak) {
  RequestTable table;
  const uint64_t answered = table.AddRequest(QuotaMessage());
  const uint64_t granted = table.AddRequest(AcquireMessage());
  const uint64_t waiting = table.AddRequest(AcquireMessage());
  WriteAll(table);
  v1::BrokerMessage report;
  report.set_request_id(answered);
  report.mutable_quota_report();
  ASSERT_TRUE(table.OnMessage(report).ok());
  ASSERT_TRUE(table.OnMessage(GrantMessage(granted)).ok());
  table.Rewind();
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(waiting));
}

TEST(RequestTableTest, MappedIsRepeatedUntilALaterRequestIsAnswered) {
  RequestTable table;
  table.AddUnwatched(MappedMessage(70));
  const uint64_t id = table.AddRequest(QuotaMessage());
  WriteAll(table);
  table.Rewind();
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(1, 2));
  v1::BrokerMessage report;
  report.set_request_id(id);
  report.mutable_quota_report();
  ASSERT_TRUE(table.OnMessage(report).ok());
  EXPECT_EQ(table.unconfirmed(), 0U);
  table.Rewind();
  EXPECT_THAT(WriteAll(table), testing::IsEmpty());
}

TEST(RequestTableTest, AMappedThatWasNotWrittenIsDroppedByItsRelease) {
  RequestTable table;
  table.AddUnwatched(MappedMessage(70));
  table.AddUnwatched(MappedMessage(71));
  const uint64_t release = table.AddRequest(ReleaseMessage(70));
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(2, release));
  table.AddRequest(ReleaseMessage(71));
  table.Rewind();
  EXPECT_THAT(WriteAll(table), testing::ElementsAre(2, release, release + 1))
      << "what was written is repeated as it was";
}

TEST(RequestTableTest, SlabsMayBeTakenBeforeTheirGrant) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::Slabs half = SlabsFrame(id);
  half.mutable_slab_bytes()->RemoveLast();
  ASSERT_TRUE(table.OnSlabs(half, Fds(1)).ok());
  EXPECT_FALSE(table.TakeSlabs(id).has_value()) << "not all are here";
  half.set_first_slab(1);
  ASSERT_TRUE(table.OnSlabs(half, Fds(1)).ok());
  const std::optional<EarlySlabs> slabs = table.TakeSlabs(id);
  ASSERT_TRUE(slabs.has_value());
  EXPECT_EQ(slabs->handles.size(), 2U);
  EXPECT_THAT(slabs->slab_bytes, testing::ElementsAre(2 * kMiB, 2 * kMiB));
  EXPECT_FALSE(table.TakeSlabs(id).has_value()) << "they are taken once";
  EXPECT_FALSE(table.TakeAnswer(id).has_value());

  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(answer->ok());
  EXPECT_TRUE(std::get<Granted>(**answer).slabs.TakeHandles().empty());
}

// Slabs from a broker that takes the session over from one that died.
TEST(RequestTableTest, ALeaseThatIsSentAnewTakesThePlaceOfAHalfOne) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::Slabs half = SlabsFrame(id);
  half.mutable_slab_bytes()->RemoveLast();
  std::vector<int> old;
  ASSERT_TRUE(table.OnSlabs(half, Fds(1, &old)).ok());
  v1::Slabs other = SlabsFrame(id);
  other.set_lease_id(71);
  other.set_slabs_in_lease(3);
  ASSERT_TRUE(table.OnSlabs(other, Fds(2)).ok());
  EXPECT_FALSE(IsOpen(old[0]));
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  const auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok()) << answer->status();
}

TEST(RequestTableTest, SlabsOfALeaseThatIsAllHereAreClosedWhenTheyComeAgain) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  std::vector<int> kept;
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &kept)).ok());
  std::vector<int> again;
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &again)).ok());
  EXPECT_TRUE(IsOpen(kept[0]));
  EXPECT_FALSE(IsOpen(again[0]));
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  again.clear();
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &again)).ok());
  EXPECT_FALSE(IsOpen(again[0])) << "granted";
  ASSERT_TRUE(table.TakeAnswer(id).has_value());
  again.clear();
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &again)).ok());
  EXPECT_FALSE(IsOpen(again[0])) << "and taken";
}

TEST(RequestTableTest, ALeaseThatWasNeverGrantedMakesWayEvenIfItWasTaken) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::Slabs lost = SlabsFrame(id);
  lost.set_lease_id(69);
  ASSERT_TRUE(table.OnSlabs(lost, Fds(2)).ok());
  ASSERT_TRUE(table.TakeSlabs(id).has_value());
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  ASSERT_TRUE(table.TakeSlabs(id).has_value());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value() && answer->ok());
  EXPECT_FALSE(std::get<Granted>(**answer).slabs.has_handles());
}

TEST(RequestTableTest, AGrantThatComesWithItsSlabsBringsThemThoughOthersWere) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::Slabs lost = SlabsFrame(id);
  lost.set_lease_id(69);
  ASSERT_TRUE(table.OnSlabs(lost, Fds(2)).ok());
  ASSERT_TRUE(table.TakeSlabs(id).has_value());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  EXPECT_FALSE(table.TakeAnswer(id).has_value());
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value() && answer->ok());
  EXPECT_TRUE(std::get<Granted>(**answer).slabs.has_handles());
}

// Only a broker that lies grants two leases for one request.
TEST(RequestTableTest, OfSlabsThatCameTwiceEachAreHandedOutOnce) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  std::vector<int> first;
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &first)).ok());
  const std::optional<EarlySlabs> taken = table.TakeSlabs(id);
  ASSERT_TRUE(taken.has_value());
  v1::BrokerMessage other = GrantMessage(id);
  other.mutable_grant()->set_lease_id(71);
  ASSERT_TRUE(table.OnMessage(other).ok());
  EXPECT_FALSE(table.TakeAnswer(id).has_value()) << "its slabs are to come";
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  EXPECT_FALSE(table.TakeAnswer(id).has_value()) << "what was taken is gone";
  std::vector<int> second;
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &second)).ok());
  auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value() && answer->ok());
  const auto handles = std::get<Granted>(**answer).slabs.TakeHandles();
  ASSERT_EQ(handles.size(), 2U);
  EXPECT_EQ(std::get<base::UniqueFd>(handles[0]).get(), second[0]);
  EXPECT_EQ(std::get<base::UniqueFd>(taken->handles[0]).get(), first[0]);
  EXPECT_TRUE(IsOpen(first[0]) && IsOpen(second[0]));
}

TEST(RequestTableTest, AGrantThatLiesAboutTakenSlabsIsReleased) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  WriteAll(table);
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  ASSERT_TRUE(table.TakeSlabs(id).has_value());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id, 8 * kMiB)).ok());
  const auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsInternal(answer->status()));
  EXPECT_EQ(WriteAll(table).size(), 1U) << "its Release";
}

TEST(RequestTableTest, AnsweredSlabsComeWithTheAnswerAlone) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  EXPECT_FALSE(table.TakeSlabs(id).has_value());
  EXPECT_TRUE(table.TakeAnswer(id).has_value());
}

TEST(RequestTableTest, ASecondAnswerIsIgnored) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  EXPECT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  ASSERT_TRUE(table.TakeAnswer(id).has_value());
  EXPECT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  EXPECT_FALSE(table.TakeAnswer(id).has_value());
}

TEST(RequestTableTest, ARefusalKeepsItsDetailAndClosesSlabsThatCame) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::Slabs half = SlabsFrame(id);
  half.mutable_slab_bytes()->RemoveLast();
  std::vector<int> fds;
  ASSERT_TRUE(table.OnSlabs(half, Fds(1, &fds)).ok());
  v1::BrokerMessage refusal;
  refusal.set_request_id(id);
  refusal.mutable_error()->set_code(8);
  refusal.mutable_error()->set_message("too much");
  refusal.mutable_error()->mutable_detail()->set_reason(v1::TENANT_LIMIT);
  refusal.mutable_error()->mutable_detail()->set_deficit_bytes(5);
  ASSERT_TRUE(table.OnMessage(refusal).ok());
  const auto answer = table.TakeAnswer(id);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(answer->status()));
  EXPECT_EQ(GetErrorDetail(answer->status())->reason,
            ErrorReason::kTenantLimit);
  EXPECT_EQ(GetErrorDetail(answer->status())->deficit_bytes, 5U);
  EXPECT_FALSE(IsOpen(fds[0]));
}

TEST(RequestTableTest, AnAbandonedAcquireIsReleasedWhenItsGrantComes) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  WriteAll(table);
  table.Abandon(id);
  std::vector<int> fds;
  ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &fds)).ok());
  EXPECT_FALSE(IsOpen(fds[0]));
  EXPECT_FALSE(IsOpen(fds[1]));
  ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  const v1::ClientMessage* release = table.NextToWrite();
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->release().lease_id(), 70U);
  v1::BrokerMessage released;
  released.set_request_id(release->request_id());
  released.mutable_released()->set_lease_id(70);
  ASSERT_TRUE(table.OnMessage(released).ok());
  EXPECT_EQ(table.unconfirmed(), 0U);
}

TEST(RequestTableTest, AnAcquireAbandonedAfterItsGrantIsReleased) {
  for (const bool with_slabs : {true, false}) {
    RequestTable table;
    const uint64_t id = table.AddRequest(AcquireMessage());
    WriteAll(table);
    ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
    if (with_slabs) {
      ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
    }
    table.Abandon(id);
    const v1::ClientMessage* release = table.NextToWrite();
    ASSERT_NE(release, nullptr);
    EXPECT_EQ(release->release().lease_id(), 70U);
    EXPECT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok())
        << "late slabs are closed";
  }
}

TEST(RequestTableTest, AnExportIsOfALeaseThatStaysTheSessions) {
  RequestTable table;
  v1::ClientMessage message;
  message.mutable_export_lease()->set_lease_id(70);
  const uint64_t answered = table.AddRequest(message);
  const uint64_t given_up = table.AddRequest(message);
  const uint64_t wrong = table.AddRequest(message);
  table.Abandon(given_up);
  WriteAll(table);
  for (const uint64_t id : {answered, given_up}) {
    ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2)).ok());
    ASSERT_TRUE(table.OnMessage(GrantMessage(id)).ok());
  }
  EXPECT_TRUE(WriteAll(table).empty()) << "nothing is released";
  ASSERT_TRUE(table.TakeAnswer(answered).has_value());
  v1::BrokerMessage of_another = GrantMessage(wrong);
  of_another.mutable_grant()->set_lease_id(71);
  EXPECT_FALSE(table.OnMessage(of_another).ok());
}

TEST(RequestTableTest, WaitingIsToldOnce) {
  RequestTable table;
  const uint64_t id = table.AddRequest(AcquireMessage());
  v1::BrokerMessage waiting;
  waiting.set_request_id(id);
  waiting.mutable_waiting()->set_ahead(3);
  ASSERT_TRUE(table.OnMessage(waiting).ok());
  EXPECT_EQ(table.TakeAhead(id), 3U);
  EXPECT_EQ(table.TakeAhead(id), std::nullopt);
  EXPECT_FALSE(table.TakeAnswer(id).has_value());
}

TEST(RequestTableTest, AGrantThatLiesAboutItsSlabsIsRefusedAndReleased) {
  struct Lie {
    const char* what;
    uint64_t asked;
    uint64_t granted;
    uint32_t slabs;
  };
  for (const Lie& lie : {Lie{"fewer bytes than sent", 2 * kMiB, 2 * kMiB, 2},
                         Lie{"more bytes than sent", 4 * kMiB, 8 * kMiB, 2},
                         Lie{"another number of slabs", 4 * kMiB, 4 * kMiB, 3},
                         Lie{"less than asked for", 6 * kMiB, 4 * kMiB, 2}}) {
    SCOPED_TRACE(lie.what);
    RequestTable table;
    const uint64_t id = table.AddRequest(AcquireMessage(lie.asked));
    WriteAll(table);
    ASSERT_TRUE(table.OnMessage(GrantMessage(id, lie.granted, lie.slabs)).ok());
    std::vector<int> fds;
    ASSERT_TRUE(table.OnSlabs(SlabsFrame(id), Fds(2, &fds)).ok());
    const auto answer = table.TakeAnswer(id);
    ASSERT_TRUE(answer.has_value());
    EXPECT_TRUE(absl::IsInternal(answer->status()));
    EXPECT_FALSE(GetErrorDetail(answer->status()).has_value());
    EXPECT_FALSE(IsOpen(fds[0]));
    EXPECT_EQ(WriteAll(table).size(), 1U) << "its Release";
  }
}

TEST(RequestTableTest, AnswersOfTheWrongKindBreakTheProtocol) {
  RequestTable table;
  const uint64_t acquire = table.AddRequest(AcquireMessage());
  const uint64_t quota = table.AddRequest(QuotaMessage());
  const uint64_t release = table.AddRequest(ReleaseMessage(70));
  v1::BrokerMessage report;
  report.set_request_id(acquire);
  report.mutable_quota_report();
  EXPECT_TRUE(absl::IsInternal(table.OnMessage(report)));
  EXPECT_TRUE(absl::IsInternal(table.OnMessage(GrantMessage(quota))));
  v1::BrokerMessage released;
  released.set_request_id(release);
  released.mutable_released()->set_lease_id(71);
  EXPECT_TRUE(absl::IsInternal(table.OnMessage(released)));
  v1::BrokerMessage nothing;
  nothing.set_request_id(quota);
  EXPECT_TRUE(absl::IsInternal(table.OnMessage(nothing)));
  EXPECT_TRUE(absl::IsInternal(table.OnMessage(GrantMessage(999))));
}

TEST(RequestTableTest, SlabsForNoAcquireBreakTheProtocolAndAreClosed) {
  RequestTable table;
  const uint64_t quota = table.AddRequest(QuotaMessage());
  for (const uint64_t id : {quota, uint64_t{999}}) {
    std::vector<int> fds;
    EXPECT_TRUE(absl::IsInternal(table.OnSlabs(SlabsFrame(id), Fds(2, &fds))));
    EXPECT_FALSE(IsOpen(fds[0]));
  }
}

TEST(SlabSetTest, UnsoundFramesAreRefused) {
  v1::Slabs frame = SlabsFrame(1);
  EXPECT_TRUE(SlabSet::CheckFrame(frame, 2).ok());
  EXPECT_FALSE(SlabSet::CheckFrame(frame, 1).ok());
  EXPECT_FALSE(SlabSet::CheckFrame(frame, 3).ok());
  EXPECT_FALSE(SlabSet::CheckFrame(v1::Slabs(), 0).ok());

  frame.add_ipc_handles(std::string(64, 'h'));
  EXPECT_FALSE(SlabSet::CheckFrame(frame, 1).ok())
      << "fds and ipc handles in one frame";
  frame.add_ipc_handles(std::string(64, 'h'));
  EXPECT_TRUE(SlabSet::CheckFrame(frame, 0).ok());
  frame.set_ipc_handles(1, std::string(63, 'h'));
  EXPECT_FALSE(SlabSet::CheckFrame(frame, 0).ok());

  v1::Slabs empty_slab = SlabsFrame(1);
  empty_slab.set_slab_bytes(0, 0);
  EXPECT_FALSE(SlabSet::CheckFrame(empty_slab, 2).ok());
}

TEST(SlabSetTest, FramesMustContinueTheirLease) {
  v1::Slabs first = SlabsFrame(1);
  first.set_slabs_in_lease(4);
  const auto after_first = [&](const std::function<void(v1::Slabs&)>& change) {
    SlabSet slabs;
    EXPECT_TRUE(slabs.Add(first, Fds(2)).ok());
    EXPECT_FALSE(slabs.complete());
    v1::Slabs second = first;
    second.set_first_slab(2);
    change(second);
    return slabs.Add(second, Fds(second.slab_bytes_size()));
  };
  EXPECT_TRUE(after_first([](v1::Slabs&) {}).ok());
  EXPECT_TRUE(after_first([](v1::Slabs& f) { f.set_first_slab(0); }).ok())
      << "it begins anew";
  EXPECT_FALSE(after_first([](v1::Slabs& f) { f.set_first_slab(1); }).ok());
  EXPECT_FALSE(after_first([](v1::Slabs& f) { f.set_first_slab(3); }).ok());
  EXPECT_FALSE(after_first([](v1::Slabs& f) { f.set_lease_id(71); }).ok());
  EXPECT_FALSE(after_first([](v1::Slabs& f) { f.set_slabs_in_lease(5); }).ok());
  EXPECT_FALSE(after_first([](v1::Slabs& f) { f.add_slab_bytes(kMiB); }).ok());
  EXPECT_THAT(after_first([](v1::Slabs& f) {
                f.set_slab_bytes(0,
                                 std::numeric_limits<uint64_t>::max() - kMiB);
              }).message(),
              HasSubstr("overflow"));
}

TEST(SlabSetTest, ALeaseOfNoOrAbsurdlyManySlabsIsRefused) {
  for (const uint32_t count :
       {uint32_t{0}, SlabSet::kMostSlabs + 1, ~uint32_t{0}}) {
    SlabSet slabs;
    v1::Slabs frame = SlabsFrame(1);
    frame.set_slabs_in_lease(count);
    EXPECT_FALSE(slabs.Add(frame, Fds(2)).ok()) << count;
  }
}

}  // namespace
}  // namespace gmb::internal
