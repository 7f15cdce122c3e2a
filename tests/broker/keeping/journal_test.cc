// The journal: what a successor reads after a death at any store, and of
// journals that are cut off, damaged, newer, or none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/journal_writer.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kSlots = 24;

// Memory aligned as a mapping is.
class Memory {
 public:
  explicit Memory(size_t bytes) : words_((bytes + 7) / 8), bytes_(bytes) {}
  static Memory Formatted() {
    Memory memory(JournalBytes(kSlots));
    FormatJournal("0123456789abcdef", kSlots, memory.data());
    return memory;
  }
  [[nodiscard]] char* data() { return reinterpret_cast<char*>(words_.data()); }
  [[nodiscard]] absl::string_view view() { return {data(), bytes_}; }
  [[nodiscard]] absl::StatusOr<JournalContents> Read() {
    return ReadJournal(view());
  }
  [[nodiscard]] JournalContents MustRead() {
    auto contents = Read();
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? *std::move(contents) : JournalContents();
  }

 private:
  std::vector<uint64_t> words_;
  size_t bytes_;
};

// The contents that a journal should have: kind and contents by slot.
using Said = std::map<uint32_t, std::pair<uint16_t, std::string>>;

Said SaidBy(const JournalContents& contents) {
  Said said;
  for (const JournalRecord& record : contents.records)
    said[record.slot] = {record.kind, record.contents};
  return said;
}

TEST(Journal, SaysWhatWasCommittedAndNothingElse) {
  Memory memory = Memory::Formatted();
  JournalWriter writer(memory.data(), memory.MustRead());
  const uint32_t a = *writer.NewSlot();
  const uint32_t b = *writer.NewSlot();
  ASSERT_TRUE(writer.Write(a, 1, "lease").ok());
  EXPECT_THAT(memory.MustRead().records, IsEmpty());
  EXPECT_EQ(memory.MustRead().torn, 1U);
  ASSERT_TRUE(writer.Write(b, 2, "slab").ok());
  writer.Commit();
  EXPECT_EQ(SaidBy(memory.MustRead()),
            (Said{{a, {1, "lease"}}, {b, {2, "slab"}}}));
  writer.Free(a);
  EXPECT_NE(*writer.NewSlot(), a) << "it is not free yet";
  ASSERT_TRUE(writer.Write(b, 2, "two").ok());
  EXPECT_EQ(SaidBy(memory.MustRead()),
            (Said{{a, {1, "lease"}}, {b, {2, "slab"}}}));
  writer.Commit();
  EXPECT_EQ(SaidBy(memory.MustRead()), (Said{{b, {2, "two"}}}));
  EXPECT_EQ(memory.MustRead().torn, 0U);
  EXPECT_EQ(*writer.NewSlot(), a);
}

TEST(Journal, RefusesWhatIsNoRecord) {
  Memory memory = Memory::Formatted();
  JournalWriter writer(memory.data(), memory.MustRead());
  EXPECT_FALSE(writer.Write(kSlots, 1, "").ok());
  EXPECT_FALSE(writer.Write(0, 0, "").ok());
  EXPECT_FALSE(
      writer.Write(0, 1, std::string(kJournalContentsBytes + 1, 'x')).ok());
  EXPECT_TRUE(writer.Write(0, 1, std::string(kJournalContentsBytes, 'x')).ok());
  for (uint32_t i = 0; i < kSlots; ++i) EXPECT_TRUE(writer.NewSlot().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(writer.NewSlot().status()));
}

// The same random commits; the memory is looked at, and taken over, after every
// single store.
TEST(Journal, ADeathAtAnyStoreLeavesTheLastCommit) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Memory memory = Memory::Formatted();
    Said before;
    Said after;
    size_t stores = 0;
    bool committing = false;
    const auto stored = [&] {
      ++stores;
      const JournalContents found = memory.MustRead();
      EXPECT_THAT(found.damaged, IsEmpty());
      EXPECT_EQ(SaidBy(found), committing ? after : before);
      // The successor says the same, and goes on with a commit of its own.
      Memory copy(memory.view().size());
      std::memcpy(copy.data(), memory.data(), memory.view().size());
      JournalWriter next(copy.data(), found);
      EXPECT_EQ(copy.MustRead().torn, 0U);
      EXPECT_EQ(SaidBy(copy.MustRead()), SaidBy(found));
      if (next.free_slots() == 0) return;
      Said expected = SaidBy(found);
      const uint32_t slot = *next.NewSlot();
      EXPECT_TRUE(next.Write(slot, 9, "next").ok());
      next.Commit();
      expected[slot] = {9, "next"};
      EXPECT_EQ(SaidBy(copy.MustRead()), expected);
    };
    JournalWriter writer(memory.data(), memory.MustRead(), stored);
    for (int commit = 0; commit < 12; ++commit) {
      const int changes = 1 + static_cast<int>(random() % 5);
      for (int i = 0; i < changes; ++i) {
        const auto used = after.size();
        if (used > 0 && random() % 3 == 0) {
          const uint32_t slot =
              std::next(after.begin(), random() % used)->first;
          writer.Free(slot);
          after.erase(slot);
        } else if (used > 0 && random() % 2 == 0) {
          const uint32_t slot =
              std::next(after.begin(), random() % used)->first;
          after[slot] = {3, absl::StrCat("changed ", random())};
          ASSERT_TRUE(writer.Write(slot, 3, after[slot].second).ok());
        } else if (auto slot = writer.NewSlot(); slot.ok()) {
          after[*slot] = {
              static_cast<uint16_t>(1 + random() % 4),
              std::string(random() % (kJournalContentsBytes + 1), 'n')};
          ASSERT_TRUE(
              writer.Write(*slot, after[*slot].first, after[*slot].second)
                  .ok());
        }
      }
      committing = true;
      writer.Commit();
      committing = false;
      before = after;
      if (HasFailure()) return;
    }
    EXPECT_GT(stores, 36U);
  }
}

TEST(Journal, ACutJournalIsNone) {
  Memory memory = Memory::Formatted();
  const absl::string_view all = memory.view();
  for (size_t bytes = 0; bytes < all.size(); bytes += 8) {
    const auto read = ReadJournal(all.substr(0, bytes));
    EXPECT_EQ(read.status().code(), bytes < kJournalHeaderBytes
                                        ? absl::StatusCode::kInvalidArgument
                                        : absl::StatusCode::kDataLoss);
  }
}

// Each one says what to do.
TEST(Journal, ANewerOneIsForANewerRelease) {
  Memory memory = Memory::Formatted();
  auto* const header = reinterpret_cast<JournalHeader*>(memory.data());
  header->format = 7;
  header->readable_from = kJournalFormat + 1;
  const auto read = memory.Read();
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status()));
  EXPECT_THAT(read.status().message(), HasSubstr("format 7"));
  EXPECT_THAT(read.status().message(), HasSubstr("newer release"));
}

TEST(Journal, TheRecordsOfAnotherJournalAreNotItsOwn) {
  Memory memory = Memory::Formatted();
  JournalWriter writer(memory.data(), memory.MustRead());
  const uint32_t slot = *writer.NewSlot();
  ASSERT_TRUE(writer.Write(slot, 1, "mine").ok());
  writer.Commit();
  Memory other(JournalBytes(kSlots));
  FormatJournal("fedcba9876543210", kSlots, other.data());
  CommitWordIn(other.data()).store(CommitWord("fedcba9876543210", 1));
  std::memcpy(other.data() + kJournalHeaderBytes,
              memory.data() + kJournalHeaderBytes,
              memory.view().size() - kJournalHeaderBytes);
  EXPECT_THAT(other.MustRead().records, IsEmpty());
  EXPECT_THAT(other.MustRead().damaged, SizeIs(1));
}

// A record in the wrong slot is damage, too.
TEST(Journal, ARecordBelongsToItsSlot) {
  Memory memory = Memory::Formatted();
  JournalWriter writer(memory.data(), memory.MustRead());
  ASSERT_TRUE(writer.Write(3, 1, "mine").ok());
  writer.Commit();
  std::memcpy(static_cast<void*>(&CopyOf(memory.data(), 4, 0)),
              static_cast<void*>(&CopyOf(memory.data(), 3, 0)),
              kJournalCopyBytes);
  EXPECT_THAT(memory.MustRead().damaged, ::testing::ElementsAre(4));
  EXPECT_EQ(SaidBy(memory.MustRead()), (Said{{3, {1, "mine"}}}));
}

// Its record would be taken for one that was never committed, and what the slot
// said before for its last word.
TEST(Journal, AFlippedBitInANumberIsFound) {
  Memory memory = Memory::Formatted();
  JournalWriter writer(memory.data(), memory.MustRead());
  for (const char* const said : {"one", "two", "three", "four"}) {
    ASSERT_TRUE(writer.Write(0, 1, said).ok());
    writer.Commit();
  }
  for (int bit = 0; bit < 64; ++bit) {
    for (size_t copy = 0; copy < kJournalCopies; ++copy) {
      std::atomic<uint64_t>& word = CopyOf(memory.data(), 0, copy).commit;
      const uint64_t good = word.load();
      word.store(good ^ uint64_t{1} << bit);
      EXPECT_THAT(memory.MustRead().damaged, ::testing::ElementsAre(0));
      word.store(good);
    }
    std::atomic<uint64_t>& last = CommitWordIn(memory.data());
    last.store(last.load() ^ uint64_t{1} << bit);
    EXPECT_TRUE(absl::IsDataLoss(memory.Read().status()));
    last.store(last.load() ^ uint64_t{1} << bit);
  }
  EXPECT_EQ(SaidBy(memory.MustRead()), (Said{{0, {1, "four"}}}));
}

// Any bytes are read without harm; and a flipped bit is never taken for another
// record: it is found, or it was in what does not count.
TEST(Journal, FlippedBitsAndGarbageAreFound) {
  size_t found_damage = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Memory memory = Memory::Formatted();
    JournalWriter writer(memory.data(), memory.MustRead());
    Said said;
    for (int commit = 0; commit < 4; ++commit) {
      for (int i = 0; i < 3; ++i) {
        const auto slot = static_cast<uint32_t>(random() % kSlots);
        said[slot] = {1, absl::StrCat("record ", random())};
        ASSERT_TRUE(writer.Write(slot, 1, said[slot].second).ok());
      }
      writer.Commit();
    }
    const int flips = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < flips; ++i) {
      const size_t at = random() % memory.view().size();
      memory.data()[at] =
          static_cast<char>(memory.data()[at] ^ (1 << random() % 8));
    }
    if (seed % 10 == 0) {  // garbage
      const size_t from = random() % memory.view().size();
      for (size_t at = from; at < memory.view().size(); ++at)
        memory.data()[at] = static_cast<char>(random());
    }
    const auto read = memory.Read();
    if (!read.ok()) {
      ++found_damage;
      continue;
    }
    const std::set<uint32_t> damaged(read->damaged.begin(),
                                     read->damaged.end());
    found_damage += damaged.empty() ? 0 : 1;
    for (const auto& [slot, record] : SaidBy(*read)) {
      EXPECT_TRUE(said.contains(slot)) << slot;
      EXPECT_EQ(record, said[slot]) << slot;
    }
    for (const auto& [slot, record] : said) {
      EXPECT_TRUE(damaged.contains(slot) || SaidBy(*read).contains(slot))
          << "slot " << slot << " is lost, and nobody says so";
    }
    if (HasFailure()) return;
  }
  std::printf("damage was found in %zu of 3000\n", found_damage);
  EXPECT_GT(found_damage, 200U);
}

TEST(JournalFile, IsReadByTheProcessAfterTheOneThatWasKilled) {
  auto file = JournalFile::Create(kSlots);
  ASSERT_TRUE(file.ok()) << file.status();
  base::UniqueFd kept(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    // The mapping is not inherited.
    auto mapped = JournalFile::Adopt(std::move(kept));
    if (!mapped.ok()) ::_exit(1);
    JournalWriter journal(mapped->memory(), *mapped->Read());
    const auto slot = journal.NewSlot();
    if (!journal.Write(*slot, 5, "a promise").ok()) ::_exit(1);
    journal.Commit();
    if (!journal.Write(*slot, 5, "half of another").ok()) ::_exit(1);
    (void)!::write(ends[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  auto adopted = JournalFile::Adopt(std::move(kept));
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  const auto contents = adopted->Read();
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_THAT(contents->records, SizeIs(1));
  EXPECT_EQ(contents->records[0].contents, "a promise");
  EXPECT_EQ(contents->torn, 1U);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(JournalFile, TakesOnlyMemoryOfAFixedSize) {
  base::UniqueFd soft(::memfd_create("soft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(soft.get(), JournalBytes(kSlots)), 0);
  EXPECT_TRUE(
      absl::IsInvalidArgument(JournalFile::Adopt(std::move(soft)).status()));
  base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(
      absl::IsInvalidArgument(JournalFile::Adopt(std::move(null)).status()));
  base::UniqueFd small(
      ::memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_TRUE(
      absl::IsInvalidArgument(JournalFile::Adopt(std::move(small)).status()));
  EXPECT_FALSE(JournalFile::Create(0).ok());
  EXPECT_FALSE(JournalFile::Create(kMostJournalSlots + 1).ok());
}

}  // namespace
}  // namespace gmb::broker
