// The records that are read from a journal: those that were recorded, after a
// death at any store; and of journals that are damaged, full, or nonsense.
#include "broker/keeping/record_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "broker/keeping/record_reader.h"
#include "gmb/journal/v1/records.pb.h"
#include "tests/broker/keeping/record_makers.h"
#include "tests/broker/machine/record_book.h"

namespace gmb::broker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kSlots = 4096;

// A turn that records these and ends those.
RecordChanges Turn(std::vector<LeaseRecord> leases,
                   std::vector<uint64_t> ended = {}) {
  RecordChanges changes;
  changes.leases = std::move(leases);
  changes.ended_leases = std::move(ended);
  return changes;
}
RecordChanges Generation(uint64_t generation) {
  RecordChanges changes;
  changes.head = HeadRecord{.generation = generation};
  return changes;
}
LeaseRecord SmallLease(uint64_t id) {
  LeaseRecord lease;
  lease.id = id;
  lease.session = 1;
  lease.tenant = "a";
  lease.device = "host-0";
  return lease;
}

bool Same(const Records& a, const Records& b) {
  return a.head == b.head && a.pools == b.pools && a.sessions == b.sessions &&
         a.leases == b.leases;
}

std::unique_ptr<RecordJournal> Begin(uint32_t slots = kSlots,
                                     const Records& taken_over = {},
                                     std::function<void()> stored = nullptr) {
  auto file = JournalFile::Create(slots);
  EXPECT_TRUE(file.ok()) << file.status();
  auto journal =
      RecordJournal::Begin(*std::move(file), taken_over, std::move(stored));
  EXPECT_TRUE(journal.ok()) << journal.status();
  return *std::move(journal);
}

FoundRecords ReadAll(const RecordJournal& journal) {
  const auto contents = journal.file().Read();
  EXPECT_TRUE(contents.ok()) << contents.status();
  auto found = ReadRecords(*contents);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *std::move(found) : FoundRecords();
}

// Pools in the order of their names, as the book has them.
Records Sorted(Records records) {
  std::sort(records.pools.begin(), records.pools.end(),
            [](const PoolRecord& a, const PoolRecord& b) {
              return a.device < b.device;
            });
  return records;
}

TEST(RecordJournal, SaysWhatWasRecorded) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RecordMaker maker(seed);
    auto journal = Begin();
    RecordBook book;
    std::set<uint64_t> sessions;
    std::set<uint64_t> leases;
    for (int turn = 0; turn < 60; ++turn) {
      const RecordChanges changes = maker.Changes(&sessions, &leases, 20);
      journal->Commit(changes);
      book.Apply(changes);
      const FoundRecords found = ReadAll(*journal);
      ASSERT_THAT(found.set_aside, IsEmpty());
      ASSERT_TRUE(Same(Sorted(found.records), book.All())) << turn;
      // Its successor begins with the same.
      if (turn % 20 != 0) continue;
      journal = Begin(kSlots, found.records);
      ASSERT_TRUE(Same(Sorted(ReadAll(*journal).records), book.All()));
    }
    EXPECT_EQ(journal->left_out(), 0U);
  }
}

// A commit is there wholly or not at all, whichever of its stores was the last.
TEST(RecordJournal, ADeathAtAnyStoreLeavesOneOfTwoStates) {
  size_t stores = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RecordMaker maker(seed);
    RecordJournal* looked_at = nullptr;
    Records before;
    Records after;
    size_t as_before = 0;
    size_t as_after = 0;
    const auto stored = [&] {
      if (looked_at == nullptr) return;
      ++stores;
      const Records found = Sorted(ReadAll(*looked_at).records);
      if (Same(found, after)) {
        ++as_after;
      } else {
        EXPECT_TRUE(Same(found, before));
        EXPECT_EQ(as_after, 0U) << "it went back";
        ++as_before;
      }
    };
    const auto journal = Begin(1024, {}, stored);
    RecordBook book;
    std::set<uint64_t> sessions;
    std::set<uint64_t> leases;
    for (int turn = 0; turn < 15 && !HasFailure(); ++turn) {
      const RecordChanges changes = maker.Changes(&sessions, &leases, 6);
      before = book.All();
      book.Apply(changes);
      after = book.All();
      as_before = as_after = 0;
      looked_at = journal.get();
      journal->Commit(changes);
      looked_at = nullptr;
    }
  }
  EXPECT_GT(stores, 500U);
}

TEST(RecordJournal, WhatDidNotChangeIsNotWrittenAgain) {
  size_t stores = 0;
  const auto journal = Begin(kSlots, {}, [&] { ++stores; });
  RecordMaker maker(1);
  LeaseRecord lease = maker.Lease(1);
  lease.place = LeaseRecord::Place::kDevice;
  lease.slabs.clear();
  for (uint64_t i = 1; i <= 300; ++i) lease.slabs.push_back({i * 2, 4096});
  journal->Commit(Turn({lease}));
  stores = 0;
  journal->Commit(Turn({lease}));
  EXPECT_EQ(stores, 0U);
  lease.sealed = !lease.sealed;
  lease.dropped = true;
  journal->Commit(Turn({lease}));
  lease.dropped = false;
  stores = 0;
  lease.place = LeaseRecord::Place::kLeaving;
  journal->Commit(Turn({lease}));
  // The records that follow may have moved by a byte or two: never more than
  // all of it.
  EXPECT_GT(stores, 0U);
  EXPECT_THAT(ReadAll(*journal).records.leases, ::testing::ElementsAre(lease));
}

TEST(RecordJournal, SlabsThatFollowEachOtherTakeOneSlot) {
  const auto journal = Begin();
  LeaseRecord lease = SmallLease(7);
  for (uint64_t i = 1; i <= 10000; ++i) lease.slabs.push_back({i, 1 << 21});
  journal->Commit(Turn({lease}));
  EXPECT_THAT(journal->file().Read()->records, SizeIs(2));  // with the head
  EXPECT_THAT(ReadAll(*journal).records.leases, ::testing::ElementsAre(lease));
}

// The broker goes on, and what has no room is written when there is some.
TEST(RecordJournal, AFullJournalLeavesRecordsOutUntilThereIsRoom) {
  const auto journal = Begin(4);
  const auto lease = [](uint64_t id, size_t slabs) {
    LeaseRecord made = SmallLease(id);
    for (uint64_t i = 1; i <= slabs; ++i)
      made.slabs.push_back({id * 1000 + i * 2, 4096});
    return made;
  };
  journal->Commit(Turn({lease(1, 1), lease(2, 1)}));
  EXPECT_EQ(journal->left_out(), 0U);
  journal->Commit(Turn({lease(3, 1), lease(4, 1)}));
  EXPECT_EQ(journal->left_out(), 1U);
  EXPECT_THAT(ReadAll(*journal).records.leases, SizeIs(3));
  // One that grows out of its slot is not kept as it was before.
  journal->Commit(Turn({lease(1, 40)}));
  EXPECT_EQ(journal->left_out(), 2U);
  journal->Commit(Turn({}, {2}));
  journal->Commit(Generation(5));
  EXPECT_EQ(journal->left_out(), 1U);
  journal->Commit(Turn({}, {3, 4}));
  journal->Commit(Generation(6));
  EXPECT_EQ(journal->left_out(), 0U);
  const FoundRecords found = ReadAll(*journal);
  EXPECT_THAT(found.set_aside, IsEmpty());
  EXPECT_THAT(found.records.leases, ::testing::ElementsAre(lease(1, 40)));
  EXPECT_EQ(found.records.head.generation, 6U);
}

// A successor would go on with a session that has such a lease, and give what
// the lease has to others.
TEST(RecordJournal, SessionsOfALeaseThatIsLeftOutAreLeftOutToo) {
  const auto journal = Begin(8);
  const auto lease = [](uint64_t id, size_t slabs,
                        const std::vector<uint64_t>& sessions) {
    LeaseRecord made = SmallLease(id);
    for (uint64_t i = 1; i <= slabs; ++i)
      made.slabs.push_back({id * 1000 + i * 2, 4096});
    for (const uint64_t session : sessions)
      made.mappings.push_back({.session = session, .request = id});
    return made;
  };
  const auto session = [](uint64_t id) {
    SessionRecord made;
    made.id = id;
    made.token = absl::StrCat("token ", id);
    made.tenant = "a";
    return made;
  };
  const auto sessions_of = [&] {
    std::vector<uint64_t> ids;
    for (const SessionRecord& one : ReadAll(*journal).records.sessions)
      ids.push_back(one.id);
    return ids;
  };
  RecordChanges begin = Turn({lease(1, 1, {1})});
  begin.sessions = {session(1), session(2), session(3)};
  journal->Commit(begin);
  EXPECT_THAT(sessions_of(), ::testing::ElementsAre(1, 2, 3));
  // Of two sessions, and too long.
  journal->Commit(Turn({lease(2, 200, {2, 3})}));
  EXPECT_EQ(journal->left_out(), 3U);
  EXPECT_THAT(sessions_of(), ::testing::ElementsAre(1));
  // It is said anew, of fewer; a session is said anew as well.
  RecordChanges anew = Turn({lease(2, 201, {3})});
  anew.sessions = {session(2), session(3)};
  journal->Commit(anew);
  EXPECT_THAT(sessions_of(), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(ReadAll(*journal).records.leases, SizeIs(1));
  // A second one; then the first has ended, and then this one fits.
  journal->Commit(Turn({lease(3, 200, {3})}));
  journal->Commit(Turn({}, {2}));
  EXPECT_THAT(sessions_of(), ::testing::ElementsAre(1, 2));
  journal->Commit(Turn({lease(3, 1, {3})}));
  EXPECT_THAT(sessions_of(), ::testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(journal->left_out(), 0U);
}

TEST(RecordJournal, WhatIsTakenOverHasToFit) {
  RecordMaker maker(3);
  Records many;
  for (uint64_t id = 1; id <= 20; ++id) many.leases.push_back(maker.Lease(id));
  auto file = JournalFile::Create(4);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      RecordJournal::Begin(*std::move(file), many).status()));
}

// A successor that dies before it has adopted leaves what it found; one that has
// adopted leaves nothing of what did not go on.
TEST(RecordJournal, TheTurnThatAdoptsSaysWhatGoesOn) {
  RecordMaker maker(9);
  Records before;
  before.head = {
      .session_ids_until = 50, .lease_ids_until = 60, .generation = 3};
  before.pools = {{"gpu", true}};
  for (const uint64_t id : {1, 2}) {
    before.sessions.push_back(maker.Session(id));
    before.leases.push_back(maker.Lease(id));
  }
  const auto journal = Begin(kSlots, before);
  journal->AwaitAdoption();
  RecordChanges start = Generation(0);
  start.pools = {{"gpu", false}};
  journal->Commit(start);
  journal->Commit(Turn({maker.Lease(9)}));
  EXPECT_TRUE(Same(ReadAll(*journal).records, before));
  RecordChanges adopts = Turn({before.leases[1]});
  adopts.head = {
      .session_ids_until = 70, .lease_ids_until = 80, .generation = 4};
  adopts.sessions = {before.sessions[1]};
  journal->Commit(adopts);
  Records after = before;
  after.head = *adopts.head;
  after.sessions.erase(after.sessions.begin());
  after.leases.erase(after.leases.begin());
  EXPECT_TRUE(Same(ReadAll(*journal).records, after));
  journal->Commit(Turn({}, {2}));
  EXPECT_THAT(ReadAll(*journal).records.leases, IsEmpty());
}

TEST(RecordJournal, SizesAreGenerousAndBounded) {
  EXPECT_GE(RecordJournal::SlotsFor(100, 10), 210U);
  EXPECT_EQ(RecordJournal::SlotsFor(~uint64_t{0}, ~uint64_t{0}),
            kMostJournalSlots);
}

// Journals by hand.
class RecordReaderTest : public ::testing::Test {
 protected:
  void Put(RecordKind kind, uint64_t id, const std::string& bytes) {
    for (size_t part = 0; part < PartsOf(bytes.size()); ++part) {
      journal_.records.push_back(
          {.slot = static_cast<uint32_t>(journal_.records.size()),
           .kind = static_cast<uint16_t>(kind),
           .commit = 1,
           .contents = EncodePart(id, bytes, part)});
    }
  }
  void PutHead() { Put(RecordKind::kHead, 0, ""); }
  static journal::v1::Lease WireLease() {
    journal::v1::Lease lease;
    lease.set_tenant("a");
    lease.set_device("host-0");
    lease.set_contents(v1::PRESERVE);
    lease.set_place(journal::v1::DEVICE);
    return lease;
  }
  void PutLease(uint64_t id, const journal::v1::Lease& lease) {
    Put(RecordKind::kLease, id, lease.SerializeAsString());
  }
  FoundRecords Found() {
    auto found = ReadRecords(journal_);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : FoundRecords();
  }

  JournalContents journal_;
};

TEST_F(RecordReaderTest, AnEmptyJournalSaysNothing) {
  const FoundRecords found = Found();
  EXPECT_THAT(found.set_aside, IsEmpty());
  EXPECT_THAT(found.records.leases, IsEmpty());
}

TEST_F(RecordReaderTest, WithoutItsHeadNothingIsTakenOver) {
  PutLease(1, WireLease());
  EXPECT_TRUE(absl::IsDataLoss(ReadRecords(journal_).status()));
  journal_.records.clear();
  journal_.damaged = {0};
  EXPECT_TRUE(absl::IsDataLoss(ReadRecords(journal_).status()));
}

TEST_F(RecordReaderTest, ALeaseWithoutOneOfItsPartsIsSetAside) {
  PutHead();
  journal::v1::Lease large = WireLease();
  large.set_share_as(std::string(500, 'n'));
  PutLease(1, large);
  PutLease(2, WireLease());
  journal_.records.erase(journal_.records.begin() + 2);
  journal_.damaged.push_back(2);
  const FoundRecords found = Found();
  EXPECT_THAT(found.records.leases, SizeIs(1));
  EXPECT_THAT(found.set_aside,
              Contains(HasSubstr("lease 1: 2 of its 3 parts")));
  EXPECT_THAT(found.set_aside, Contains(HasSubstr("slot 2")));
}

TEST_F(RecordReaderTest, PartsOfTwoRecordsAreNone) {
  PutHead();
  PutLease(1, WireLease());
  PutLease(1, WireLease());
  EXPECT_THAT(Found().set_aside, Contains(HasSubstr("lease 1: its parts")));
  EXPECT_THAT(Found().records.leases, IsEmpty());
}

TEST_F(RecordReaderTest, ContradictionsAreSetAside) {
  PutHead();
  uint64_t id = 0;
  const auto put = [&](const auto& change) {
    journal::v1::Lease lease = WireLease();
    change(&lease);
    PutLease(++id, lease);
  };
  const auto run = [](journal::v1::Lease* lease, uint64_t first, uint32_t count,
                      uint64_t size) {
    journal::v1::SlabRun* const slabs = lease->add_slabs();
    slabs->set_first(first);
    slabs->set_count(count);
    slabs->set_size(size);
  };
  const auto extent = [](journal::v1::Lease* lease, uint64_t offset,
                         uint64_t size) {
    journal::v1::Extent* const one = lease->mutable_room()->add_extents();
    one->set_offset(offset);
    one->set_size(size);
  };
  put([](auto* lease) { lease->clear_tenant(); });
  put([](auto* lease) { lease->clear_device(); });
  put([](auto* lease) { lease->clear_place(); });
  put([](auto* lease) {
    lease->set_place(static_cast<journal::v1::Place>(77));
  });
  put([](auto* lease) { lease->set_contents(99); });
  put([](auto* lease) { lease->set_contents(~0U); });
  put([&](auto* lease) { run(lease, 0, 1, 1); });
  put([&](auto* lease) { run(lease, 1, 0, 1); });
  put([&](auto* lease) { run(lease, 1, 1, 0); });
  put([&](auto* lease) { run(lease, 1, ~0U, 1); });
  put([&](auto* lease) { run(lease, ~uint64_t{0}, 2, 1); });
  put([&](auto* lease) { run(lease, 1, 2, ~uint64_t{0}); });
  put([&](auto* lease) {
    run(lease, 1, 1, 1);
    lease->set_place(journal::v1::HOST);
  });
  put([](auto* lease) { lease->add_mappings(); });
  put([](auto* lease) {
    lease->add_mappings()->set_session(4);
    lease->add_mappings()->set_session(4);
  });
  put([&](auto* lease) { extent(lease, 0, 0); });
  put([&](auto* lease) { extent(lease, 1, uint64_t{2} << 20); });
  put([&](auto* lease) { extent(lease, 0, 5); });
  put([&](auto* lease) {
    extent(lease, ~uint64_t{0} << 21, uint64_t{2} << 20);
    extent(lease, ~uint64_t{0} << 21, uint64_t{4} << 20);
  });
  Put(RecordKind::kLease, 0, WireLease().SerializeAsString());
  Put(RecordKind::kLease, 900, "\xff\xff\xff");
  Put(RecordKind::kSession, 900, "");
  Put(RecordKind::kPool, 1, "");
  Put(static_cast<RecordKind>(60), 1, "");
  journal_.records.push_back({.slot = 900, .kind = 4, .contents = "short"});
  const FoundRecords found = Found();
  EXPECT_THAT(found.records.leases, IsEmpty());
  EXPECT_THAT(found.records.sessions, IsEmpty());
  EXPECT_THAT(found.records.pools, IsEmpty());
  EXPECT_THAT(found.set_aside, SizeIs(id + 6));
}

// Of two leases with one slab nobody knows which is its owner.
TEST_F(RecordReaderTest, WhatTwoLeasesHaveIsNobodys) {
  PutHead();
  for (const uint64_t id : {1, 2, 3}) {
    journal::v1::Lease lease = WireLease();
    journal::v1::SlabRun* const slabs = lease.add_slabs();
    slabs->set_first(id == 3 ? 100 : id * 5);
    slabs->set_count(6);
    slabs->set_size(4096);
    PutLease(id, lease);
  }
  for (const uint64_t id : {11, 12, 13}) {
    journal::v1::Lease lease = WireLease();
    journal::v1::Extent* const one = lease.mutable_room()->add_extents();
    one->set_offset(id == 13 ? uint64_t{64} << 20 : (id - 11) << 21);
    one->set_size(uint64_t{4} << 20);
    PutLease(id, lease);
  }
  const FoundRecords found = Found();
  EXPECT_THAT(found.set_aside, SizeIs(4));
  ASSERT_THAT(found.records.leases, SizeIs(2));
  EXPECT_EQ(found.records.leases[0].id, 3U);
  EXPECT_EQ(found.records.leases[1].id, 13U);
}

// A newer release may say more of a record than this one knows.
TEST_F(RecordReaderTest, FieldsOfANewerReleaseAreNoDamage) {
  PutHead();
  journal::v1::Lease lease = WireLease();
  lease.GetReflection()->MutableUnknownFields(&lease)->AddLengthDelimited(
      900, "from the future");
  PutLease(1, lease);
  EXPECT_THAT(Found().set_aside, IsEmpty());
  EXPECT_THAT(Found().records.leases, SizeIs(1));
}

// Flipped bits in the journal's memory: a record is as it was, or is missed.
TEST(RecordJournal, DamageIsSaidAndNeverTakenForARecord) {
  size_t damaged = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RecordMaker maker(seed);
    const auto journal = Begin(256);
    RecordBook book;
    std::set<uint64_t> sessions;
    std::set<uint64_t> leases;
    for (int turn = 0; turn < 8; ++turn) {
      const RecordChanges changes = maker.Changes(&sessions, &leases, 5);
      journal->Commit(changes);
      book.Apply(changes);
    }
    char* const memory = journal->file().memory();
    for (int flips = 0; flips < 4; ++flips) {
      const size_t at = kJournalHeaderBytes +
                        maker.Below(64 * kJournalCopies * kJournalCopyBytes);
      memory[at] = static_cast<char>(memory[at] ^ (1 << maker.Below(8)));
    }
    const auto contents = journal->file().Read();
    ASSERT_TRUE(contents.ok());
    const auto found = ReadRecords(*contents);
    if (!found.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(found.status()));
      continue;
    }
    if (!found->set_aside.empty()) ++damaged;
    const Records was = book.All();
    for (const LeaseRecord& lease : found->records.leases)
      EXPECT_THAT(was.leases, Contains(lease));
    for (const SessionRecord& session : found->records.sessions)
      EXPECT_THAT(was.sessions, Contains(session));
    if (found->records.leases.size() < was.leases.size()) {
      EXPECT_THAT(found->set_aside, ::testing::Not(IsEmpty()));
    }
  }
  EXPECT_GT(damaged, 20U);
}

}  // namespace
}  // namespace gmb::broker
