// A journal that is read while its broker writes it.
#include "broker/keeping/journal_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "broker/keeping/record_journal.h"
#include "tests/broker/keeping/record_makers.h"

namespace gmb::broker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<RecordJournal> NewJournal() {
  auto file = JournalFile::Create(4096);
  EXPECT_TRUE(file.ok()) << file.status();
  auto journal = RecordJournal::Begin(*std::move(file), {});
  EXPECT_TRUE(journal.ok()) << journal.status();
  return *std::move(journal);
}

TEST(JournalLook, FindsNothingWrongWithOneThatIsWrittenMeanwhile) {
  const auto journal = NewJournal();
  std::atomic<bool> stop{false};
  std::thread broker([&] {
    RecordMaker maker(7);
    std::set<uint64_t> sessions;
    std::set<uint64_t> leases;
    while (!stop) journal->Commit(maker.Changes(&sessions, &leases, 20));
  });
  for (int i = 0; i < 10; ++i) {
    const auto found = LookAtJournal(journal->file().fd());
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) break;
    EXPECT_THAT(found->set_aside, IsEmpty());
  }
  stop = true;
  broker.join();
}

TEST(JournalLook, NamesWhatIsDamaged) {
  const auto journal = NewJournal();
  RecordMaker maker(7);
  RecordChanges changes;
  changes.sessions = {maker.Session(1), maker.Session(2)};
  journal->Commit(changes);
  auto found = LookAtJournal(journal->file().fd());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->records.sessions, SizeIs(2));
  auto* const memory = static_cast<char*>(journal->file().memory());
  const auto contents = journal->file().Read();
  ASSERT_TRUE(contents.ok());
  const uint32_t slot = contents->records.back().slot;
  for (size_t copy = 0; copy < kJournalCopies; ++copy)
    CopyOf(memory, slot, copy).contents[0] ^= 1;
  found = LookAtJournal(journal->file().fd());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->set_aside.empty());
}

TEST(JournalLook, CountsWhatIsUsed) {
  const auto journal = NewJournal();
  const auto empty = FillOfJournal(journal->file().fd());
  ASSERT_TRUE(empty.ok()) << empty.status();
  RecordMaker maker(7);
  RecordChanges changes;
  changes.sessions = {maker.Session(1), maker.Session(2)};
  journal->Commit(changes);
  const auto two = FillOfJournal(journal->file().fd());
  ASSERT_TRUE(two.ok()) << two.status();
  const auto contents = journal->file().Read();
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(two->used, contents->records.size());
  EXPECT_GE(two->used, empty->used + 2);
  EXPECT_EQ(two->slots, contents->slots);
}

TEST(JournalLook, RefusesOtherMemory) {
  const base::UniqueFd memory(::memfd_create("none", MFD_CLOEXEC));
  EXPECT_EQ(LookAtJournal(memory.get()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gmb::broker
