// Messages that a session sends without being asked: repeated after a break,
// unless it has said them anew since.
#include <gtest/gtest.h>

#include <vector>

#include "client/session/request_table.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

using v1::BrokerMessage;
using v1::ClientMessage;

ClientMessage Unmapped(uint64_t lease, uint64_t move) {
  ClientMessage message;
  message.mutable_unmapped()->set_lease_id(lease);
  message.mutable_unmapped()->set_move(move);
  return message;
}
ClientMessage Mapped(uint64_t lease, uint64_t move) {
  ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease);
  message.mutable_mapped()->set_move(move);
  return message;
}
ClientMessage Trimmed(uint64_t trim) {
  ClientMessage message;
  message.mutable_trimmed()->set_trim(trim);
  return message;
}
ClientMessage SetTrimmable(uint64_t bytes) {
  ClientMessage message;
  message.mutable_set_trimmable()->add_devices()->set_bytes(bytes);
  return message;
}

class RequestTableMovesTest : public ::testing::Test {
 protected:
  std::vector<ClientMessage> WriteAll() {
    std::vector<ClientMessage> written;
    while (const ClientMessage* const next = table_.NextToWrite())
      written.push_back(*next);
    return written;
  }
  // Asks, and has it answered with `answer`.
  absl::Status Ask(ClientMessage message, BrokerMessage answer) {
    answer.set_request_id(table_.AddRequest(std::move(message)));
    (void)WriteAll();
    return table_.OnMessage(answer);
  }

  RequestTable table_;
};

TEST_F(RequestTableMovesTest, AnswersToMovesAreRepeatedUntilConfirmed) {
  table_.AddUnwatched(Unmapped(1, 1));
  table_.AddUnwatched(Unmapped(2, 2));
  EXPECT_EQ(WriteAll().size(), 2U);
  table_.Rewind();
  EXPECT_EQ(WriteAll().size(), 2U);
  ClientMessage quota;
  quota.mutable_get_quota();
  BrokerMessage report;
  report.mutable_quota_report();
  ASSERT_TRUE(Ask(quota, report).ok());
  table_.Rewind();
  EXPECT_TRUE(WriteAll().empty());
}

TEST_F(RequestTableMovesTest, TheNewestMoveOfALeaseTakesTheOthersPlace) {
  table_.AddUnwatched(Mapped(1, 0));  // of its grant
  table_.AddUnwatched(Unmapped(1, 1));
  table_.AddUnwatched(Unmapped(2, 2));
  (void)WriteAll();
  table_.AddUnwatched(Mapped(1, 3));
  table_.AddUnwatched(Mapped(1, 3));
  table_.Rewind();
  const std::vector<ClientMessage> again = WriteAll();
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].mapped().move(), 0U);
  EXPECT_EQ(again[1].unmapped().move(), 2U);
  EXPECT_EQ(again[2].mapped().move(), 3U);
}

TEST_F(RequestTableMovesTest, AReleaseMakesWhatIsNotWrittenNeedless) {
  table_.AddUnwatched(Unmapped(1, 1));
  table_.AddUnwatched(Unmapped(2, 2));
  ClientMessage release;
  release.mutable_release()->set_lease_id(1);
  table_.AddUnwatched(release);
  const std::vector<ClientMessage> written = WriteAll();
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[0].unmapped().lease_id(), 2U);
  EXPECT_TRUE(written[1].has_release());
}

TEST_F(RequestTableMovesTest, TheOutboxDoesNotGrowWithTrims) {
  for (uint64_t trim = 1; trim <= 1000; ++trim) {
    table_.AddUnwatched(Trimmed(trim));
    EXPECT_EQ(WriteAll().size(), 1U);
  }
  EXPECT_LE(table_.unconfirmed(), 32U);
  for (uint64_t trim = 1001; trim <= 1100; ++trim)
    table_.AddUnwatched(Trimmed(trim));
  EXPECT_EQ(WriteAll().size(), 100U) << "each is said once";
}

// The broker may be another one, which knows nothing of it.
TEST_F(RequestTableMovesTest, TheNewestTrimmableIsSaidOnEachNewStream) {
  table_.AddUnwatched(SetTrimmable(1));
  table_.AddUnwatched(SetTrimmable(2));
  ASSERT_EQ(WriteAll().size(), 1U);
  ClientMessage quota;
  quota.mutable_get_quota();
  v1::BrokerMessage report;
  report.set_request_id(table_.AddRequest(quota));
  report.mutable_quota_report();
  WriteAll();
  ASSERT_TRUE(table_.OnMessage(report).ok());
  ASSERT_EQ(table_.unconfirmed(), 0U);
  for (int stream = 0; stream < 2; ++stream) {
    table_.Rewind();
    const std::vector<ClientMessage> written = WriteAll();
    ASSERT_EQ(written.size(), 1U) << stream;
    EXPECT_EQ(written[0].set_trimmable().devices(0).bytes(), 2U);
  }
}

TEST_F(RequestTableMovesTest, OnlyTheNewestTrimmableIsSaid) {
  table_.AddUnwatched(SetTrimmable(1));
  (void)WriteAll();
  table_.AddUnwatched(SetTrimmable(2));
  table_.AddUnwatched(SetTrimmable(3));
  table_.Rewind();
  const std::vector<ClientMessage> written = WriteAll();
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].set_trimmable().devices(0).bytes(), 3U);
}

TEST_F(RequestTableMovesTest, AnswersMustBeOfTheRightKind) {
  ClientMessage gate;
  gate.mutable_set_gate()->set_on(true);
  ClientMessage restore;
  restore.mutable_restore();
  ClientMessage seal;
  seal.mutable_seal()->set_lease_id(4);
  BrokerMessage gate_set;
  gate_set.mutable_gate_set();
  BrokerMessage restored;
  restored.mutable_restored();
  BrokerMessage sealed;
  sealed.mutable_sealed()->set_lease_id(4);
  BrokerMessage sealed_other;
  sealed_other.mutable_sealed()->set_lease_id(5);
  EXPECT_TRUE(Ask(gate, gate_set).ok());
  EXPECT_TRUE(Ask(restore, restored).ok());
  EXPECT_TRUE(Ask(seal, sealed).ok());
  EXPECT_TRUE(absl::IsInternal(Ask(gate, restored)));
  EXPECT_TRUE(absl::IsInternal(Ask(restore, gate_set)));
  EXPECT_TRUE(absl::IsInternal(Ask(seal, sealed_other)));
  EXPECT_TRUE(absl::IsInternal(Ask(seal, restored)));
}

TEST_F(RequestTableMovesTest, ARestoreThatNobodyWaitsForIsForgotten) {
  ClientMessage restore;
  restore.mutable_restore();
  const uint64_t id = table_.AddRequest(restore);
  EXPECT_EQ(WriteAll().size(), 1U);
  table_.Abandon(id);
  table_.Rewind();
  EXPECT_TRUE(WriteAll().empty());
  BrokerMessage restored;
  restored.set_request_id(id);
  restored.mutable_restored();
  EXPECT_TRUE(table_.OnMessage(restored).ok()) << "it was under way";
}

}  // namespace
}  // namespace gmb::internal
