// A journal as its successor finds it.
#include "broker/keeping/journal_format.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "keeper/wire/crc32c.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kMagic = 0x4c4e524a424d47ULL;  // "GMBJRNL"

template <typename T>
absl::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

absl::string_view IdOf(const JournalHeader& header) {
  return {header.id.data(), header.id.size()};
}

uint32_t ChecksumOf(JournalHeader header) {
  header.checksum = 0;
  return keeper::Crc32c(BytesOf(header));
}

absl::StatusOr<JournalHeader> ReadHeader(absl::string_view memory) {
  JournalHeader header;
  if (memory.size() < kJournalHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("no journal: it has ", memory.size(), " bytes"));
  }
  std::memcpy(&header, memory.data(), sizeof(header));
  if (header.magic != kMagic)
    return absl::InvalidArgumentError("no journal: it begins with other bytes");
  // A newer release may have another header behind these two.
  if (header.readable_from > kJournalFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the journal was written by a newer release, in format ",
                     header.format, ", and this one reads up to ",
                     kJournalFormat, ": start the newer release again"));
  }
  if (header.checksum != ChecksumOf(header) ||
      header.copy_bytes != kJournalCopyBytes || header.slots == 0 ||
      header.slots > kMostJournalSlots) {
    return absl::DataLossError("the journal's header is damaged");
  }
  if (memory.size() < JournalBytes(header.slots)) {
    return absl::DataLossError(
        absl::StrCat("the journal is cut off: ", memory.size(), " of ",
                     JournalBytes(header.slots), " bytes are there"));
  }
  return header;
}

enum class Found { kEmpty, kGood, kTorn, kDamaged };

Found Judge(const JournalCopy& copy, uint32_t slot,
            const JournalContents& journal) {
  const uint64_t word = copy.commit.load(std::memory_order_relaxed);
  if (word == 0) return Found::kEmpty;
  const uint64_t commit = CommitOf(word);
  if (word != CommitWord(journal.id, commit)) return Found::kDamaged;
  if (commit == journal.committed + 1) return Found::kTorn;
  const bool good = commit <= journal.committed &&
                    copy.checksum == ChecksumOf(journal.id, copy) &&
                    copy.slot == slot && copy.bytes <= kJournalContentsBytes;
  return good ? Found::kGood : Found::kDamaged;
}

void ReadSlot(char* memory, uint32_t slot, JournalContents* journal) {
  const JournalCopy* last = nullptr;
  uint64_t last_commit = 0;
  for (size_t i = 0; i < kJournalCopies; ++i) {
    const JournalCopy& copy = CopyOf(memory, slot, i);
    const uint64_t commit =
        CommitOf(copy.commit.load(std::memory_order_relaxed));
    switch (Judge(copy, slot, *journal)) {
      case Found::kEmpty:
        break;
      case Found::kTorn:
        ++journal->torn;
        break;
      case Found::kGood:
        if (commit > last_commit) {
          last = &copy;
          last_commit = commit;
          break;
        }
        if (commit < last_commit) break;
        [[fallthrough]];  // two copies of one commit: nobody writes these
      case Found::kDamaged:
        // Its number is a guess, so the other copy may be out of date.
        journal->damaged.push_back(slot);
        return;
    }
  }
  if (last == nullptr || last->kind == 0) return;
  journal->records.push_back(
      {.slot = slot,
       .kind = last->kind,
       .commit = last_commit,
       .contents = std::string(last->contents.data(), last->bytes)});
}

}  // namespace

uint64_t CommitWord(absl::string_view journal_id, uint64_t commit) {
  const uint64_t sum =
      keeper::Crc32c(BytesOf(commit), keeper::Crc32c(journal_id));
  return commit | (sum & 0xffff) << 48;
}

uint32_t ChecksumOf(absl::string_view journal_id, const JournalCopy& copy) {
  const uint64_t commit = copy.commit.load(std::memory_order_relaxed);
  uint32_t sum = keeper::Crc32c(journal_id);
  sum = keeper::Crc32c(BytesOf(commit), sum);
  const auto* const from_slot = reinterpret_cast<const char*>(&copy.slot);
  const auto* const end = reinterpret_cast<const char*>(&copy) + sizeof(copy);
  return keeper::Crc32c({from_slot, static_cast<size_t>(end - from_slot)}, sum);
}

void FormatJournal(absl::string_view id, uint32_t slots, char* memory) {
  JournalHeader header;
  header.magic = kMagic;
  header.format = kJournalFormat;
  header.readable_from = kJournalFormat;
  header.copy_bytes = kJournalCopyBytes;
  header.slots = slots;
  id.copy(header.id.data(), header.id.size());
  header.checksum = ChecksumOf(header);
  std::memcpy(memory, &header, sizeof(header));
  CommitWordIn(memory).store(CommitWord(id, 0), std::memory_order_release);
}

namespace {

// The pointer that the functions of the writer take; nothing is written.
char* StartOf(absl::string_view memory) {
  return const_cast<char*>(memory.data());
}

// All but what its slots say.
absl::StatusOr<JournalContents> ReadHead(absl::string_view memory) {
  GMB_ASSIGN_OR_RETURN(const JournalHeader header, ReadHeader(memory));
  JournalContents journal;
  journal.id = std::string(IdOf(header));
  journal.format = header.format;
  journal.slots = header.slots;
  const uint64_t word =
      CommitWordIn(StartOf(memory)).load(std::memory_order_acquire);
  journal.committed = CommitOf(word);
  if (word != CommitWord(journal.id, journal.committed)) {
    return absl::DataLossError(
        "the number of the journal's last commit is damaged");
  }
  return journal;
}

}  // namespace

absl::StatusOr<JournalContents> ReadJournal(absl::string_view memory) {
  GMB_ASSIGN_OR_RETURN(JournalContents journal, ReadHead(memory));
  for (uint32_t slot = 0; slot < journal.slots; ++slot)
    ReadSlot(StartOf(memory), slot, &journal);
  return journal;
}

absl::StatusOr<JournalContents> ReadUnwrittenJournal(absl::string_view memory) {
  GMB_ASSIGN_OR_RETURN(JournalContents journal, ReadHead(memory));
  journal.unwritten = true;
  return journal;
}

}  // namespace gmb::broker
