// The things that a keeper has, sorted: journals that count and those that do
// not, and those that nothing can be made of.
#include "broker/keeping/left_behind.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/record_journal.h"
#include "broker/keeping/remote_keeper.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SharedFd Memory() {
  return Share(base::UniqueFd(::memfd_create("kept", MFD_CLOEXEC)));
}

Kept Entry(const std::string& key, size_t fds = 1) {
  Kept kept{.key = key};
  for (size_t i = 0; i < fds; ++i) kept.fds.push_back(Memory());
  return kept;
}

Kept Session(uint64_t id) {
  Kept kept = Entry(KeptSessions::KeyOf(id), 3);
  kept.peer = 1;
  return kept;
}

SharedFd Duplicate(int fd) {
  return Share(base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)));
}

// A journal with session 3, and a lease of it with this id; and with another
// session, whose connection nobody keeps, and its lease.
Kept Journal(uint64_t number, uint64_t lease_id) {
  Records records;
  LeaseRecord lease;
  lease.id = lease_id;
  lease.tenant = "a";
  lease.device = "host-0";
  lease.mappings.push_back({.session = 3});
  records.leases.push_back(lease);
  lease.id = 1000;
  lease.mappings.push_back({.session = 500});
  lease.mappings.erase(lease.mappings.begin());
  records.leases.push_back(lease);
  for (const uint64_t id : {3, 500}) {
    SessionRecord session;
    session.id = id;
    session.token = absl::StrCat("token ", id);
    session.tenant = "a";
    records.sessions.push_back(session);
  }
  auto file = JournalFile::Create(64);
  EXPECT_TRUE(file.ok()) << file.status();
  Kept kept{.key = JournalKey(number), .fds = {Duplicate(file->fd())}};
  EXPECT_TRUE(RecordJournal::Begin(*std::move(file), records).ok());
  return kept;
}

TEST(LeftBehind, AnEmptyKeeperIsTheFirstBrokers) {
  const auto left = Sort({});
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_TRUE(left->empty());
  EXPECT_EQ(left->last_journal, 0U);
}

TEST(LeftBehind, EachThingHasItsPlace) {
  const auto left = Sort({Journal(4, 9), Entry(std::string(kHostKey)),
                          Entry(RemoteKeeper::KeyOf(7)), Session(3)});
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_THAT(left->set_aside, ElementsAre(HasSubstr("session 500")));
  ASSERT_THAT(left->records.sessions, SizeIs(1));
  EXPECT_EQ(left->records.sessions[0].id, 3U);
  EXPECT_EQ(left->slabs.count(7), 1U);
  EXPECT_EQ(left->sessions.count(3), 1U);
  EXPECT_NE(left->host, nullptr);
  ASSERT_THAT(left->records.leases, SizeIs(1));
  EXPECT_EQ(left->records.leases[0].id, 9U);
  EXPECT_THAT(left->old_keys, ElementsAre(JournalKey(4)));
  EXPECT_EQ(left->last_journal, 4U);
}

// A broker died between putting its own and removing the one before.
TEST(LeftBehind, OfTwoJournalsTheNewerCounts) {
  const auto left = Sort({Journal(10, 1), Journal(9, 2), Session(3)});
  ASSERT_TRUE(left.ok()) << left.status();
  ASSERT_THAT(left->records.leases, SizeIs(1));
  EXPECT_EQ(left->records.leases[0].id, 1U);
  EXPECT_THAT(left->old_keys, ElementsAre(JournalKey(10), JournalKey(9)));
  EXPECT_EQ(left->last_journal, 10U);
}

// Two brokers have died while they had it in hand.
TEST(LeftBehind, WhatBrokersHaveDiedOfIsSetAside) {
  const auto marks_of = [](AdoptionMarks::Step step, const RecordKey& key) {
    auto marks = *AdoptionMarks::Begin(nullptr);
    const SharedFd kept = Duplicate(marks->fd());
    for (int i = 0; i < 2; ++i) {
      marks->Take(step, key);
      marks = *AdoptionMarks::Begin(kept);
    }
    return marks;
  };
  const auto sort = [](AdoptionMarks* marks) {
    auto left = Sort({Journal(4, 9), Session(3)}, marks);
    EXPECT_TRUE(left.ok()) << left.status();
    return *std::move(left);
  };
  const RecordKey lease{RecordKind::kLease, 9};
  const RecordKey session{RecordKind::kSession, 3};
  // Its session ends with it: it would go on short of a lease.
  auto left = sort(marks_of(AdoptionMarks::Step::kTaking, lease).get());
  EXPECT_THAT(left.records.leases, IsEmpty());
  EXPECT_THAT(left.records.sessions, IsEmpty());
  EXPECT_EQ(left.refused.at(3).tenant, "a");
  EXPECT_THAT(left.refused.at(3).why, HasSubstr("lease 9"));
  EXPECT_THAT(left.set_aside,
              ::testing::Contains(HasSubstr("lease 9 of tenant a")));
  left = sort(marks_of(AdoptionMarks::Step::kTaking, session).get());
  EXPECT_THAT(left.records.sessions, IsEmpty());
  EXPECT_EQ(left.refused.count(3), 1U);
  // One that was not even read: nobody knows whose it is.
  left = sort(marks_of(AdoptionMarks::Step::kReading, lease).get());
  EXPECT_THAT(left.records.leases, IsEmpty());
  EXPECT_THAT(left.set_aside, ::testing::Contains(HasSubstr("read it")));
  const auto none = AdoptionMarks::Begin(nullptr);
  EXPECT_THAT(sort(none->get()).records.leases, SizeIs(1));
}

// Where its bytes were, the next reader finds others.
TEST(LeftBehind, ALeaseThatAMemoryErrorHasMetIsGivenUp) {
  auto left = *Sort({Journal(4, 9), Entry(std::string(kHostKey)), Session(3)});
  constexpr size_t kRoom = size_t{2} << 20;
  ASSERT_EQ(::ftruncate(left.host->get(), 2 * kRoom), 0);
  const std::string there(2 * kRoom, 'x');
  ASSERT_EQ(::pwrite(left.host->get(), there.data(), there.size(), 0),
            static_cast<ssize_t>(there.size()));
  left.records.leases[0].room = {{.offset = kRoom, .bytes = kRoom}};
  RefuseDamaged(8, &left);
  EXPECT_THAT(left.records.leases, SizeIs(1)) << "another's";
  RefuseDamaged(9, &left);
  EXPECT_THAT(left.records.leases, IsEmpty());
  EXPECT_THAT(left.records.sessions, IsEmpty());
  EXPECT_EQ(left.refused.at(3).tenant, "a");
  EXPECT_THAT(left.refused.at(3).why, HasSubstr("lease 9"));
  EXPECT_THAT(
      left.set_aside,
      ::testing::Contains(HasSubstr("lease 9 of tenant a: a page of memory")));
  std::string now(2, 'y');
  ASSERT_EQ(::pread(left.host->get(), now.data(), 2, kRoom - 1), 2);
  EXPECT_EQ(now, std::string("x\0", 2));
}

TEST(LeftBehind, WhatIsNothingOfABrokersIsSetAside) {
  Kept few = Session(3);
  few.fds.pop_back();
  Kept peerless = Session(4);
  peerless.peer.reset();
  const auto left =
      Sort({Journal(1, 1), few, peerless, Entry("slab/8", 2), Entry("slab/08"),
            Entry("journal/x"), Entry("listener/a")});
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_THAT(left->set_aside, SizeIs(8)) << "with two sessions";
  EXPECT_THAT(left->sessions, IsEmpty());
  EXPECT_THAT(left->slabs, IsEmpty());
  EXPECT_THAT(left->old_keys, SizeIs(7)) << "they are to be removed";
}

void ExpectGivenUpAlone(std::vector<Kept> all, const std::string& why) {
  const auto left = Sort(std::move(all));
  ASSERT_FALSE(left.ok());
  EXPECT_THAT(left.status().message(), HasSubstr(why));
  EXPECT_THAT(left.status().message(), HasSubstr("gmb keeper drop"));
}

TEST(LeftBehind, WithoutAJournalNothingIsTakenOver) {
  ExpectGivenUpAlone({Session(3)}, "no journal");
  ExpectGivenUpAlone({Entry(JournalKey(1)), Session(3)}, "no journal");
}

TEST(LeftBehind, ADamagedJournalSaysWhatToDo) {
  Kept kept = Journal(1, 1);
  const uint64_t garbage = 0x1234;
  ASSERT_EQ(
      ::pwrite(kept.fds[0]->get(), &garbage, sizeof(garbage), kJournalCommitAt),
      static_cast<ssize_t>(sizeof(garbage)));
  ExpectGivenUpAlone({kept, Session(3)}, "last commit is damaged");
}

TEST(LeftBehind, ANewerJournalIsForTheNewerRelease) {
  Kept kept = Journal(1, 1);
  const uint32_t newer = kJournalFormat + 1;
  ASSERT_EQ(::pwrite(kept.fds[0]->get(), &newer, sizeof(newer),
                     offsetof(JournalHeader, readable_from)),
            static_cast<ssize_t>(sizeof(newer)));
  const auto left = Sort({kept});
  EXPECT_TRUE(absl::IsFailedPrecondition(left.status())) << left.status();
  EXPECT_THAT(left.status().message(), HasSubstr("start the newer release"));
}

TEST(KeptSessionKeys, AreNumbersAndNothingElse) {
  EXPECT_EQ(KeptSessions::SessionOf(KeptSessions::KeyOf(17)), 17U);
  for (const char* const key :
       {"session/", "session/x", "session/017", "slab/1"})
    EXPECT_EQ(KeptSessions::SessionOf(key), std::nullopt) << key;
}

}  // namespace
}  // namespace gmb::broker
