#ifndef GMB_BROKER_KEEPING_JOURNAL_FORMAT_H_
#define GMB_BROKER_KEEPING_JOURNAL_FORMAT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The journal's bytes: what a broker writes down, and its successor reads
// (docs/handover.md). Pure: this file knows memory, and no files.
//
//   0     JournalHeader, written once
//   2048  the number of the last commit: one 64-bit store makes all of a
//         commit's records valid at once
//   4096  slots: two copies each. A commit writes the copy that is not valid,
//         so that the other one stays until the store.
//
// A copy's number is that of the commit that it belongs to. It is written
// first, then what it holds, then its checksum; so a copy that a dying broker
// left half-written has the number of a commit that never came, one above the
// last, and is told from one that is damaged. The broker that takes the journal
// over wipes these before it writes.
//
// The number of a commit has a checksum in its upper 16 bits: else one flipped
// bit could make the last copy look as if its commit had never come.
//
// Numbers are the machine's own: the journal never leaves it.
namespace gmb::broker {

inline constexpr uint32_t kJournalFormat = 1;
inline constexpr size_t kJournalHeaderBytes = 4096;
inline constexpr size_t kJournalCommitAt = 2048;
inline constexpr size_t kJournalCopyBytes = 256;
inline constexpr size_t kJournalCopies = 2;
inline constexpr size_t kJournalContentsBytes = 224;
inline constexpr uint32_t kMostJournalSlots = uint32_t{1} << 20;

struct JournalHeader {
  uint64_t magic = 0;
  uint32_t format = 0;  // that it was written in
  // The oldest format whose readers understand it. A release that only adds
  // kinds of records leaves it, and the release before it can take over.
  uint32_t readable_from = 0;
  uint32_t copy_bytes = 0;
  uint32_t slots = 0;
  std::array<char, 16> id{};  // random; every checksum begins with it
  uint32_t checksum = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(JournalHeader) == 48);

struct JournalCopy {
  std::atomic<uint64_t> commit;  // a CommitWord; 0: never written, or wiped
  uint32_t checksum;             // of all of the copy but itself
  uint32_t slot;
  uint16_t kind;  // 0: the slot is free
  uint16_t bytes;
  uint32_t reserved;
  uint64_t reserved2;
  std::array<char, kJournalContentsBytes> contents;
};
static_assert(sizeof(JournalCopy) == kJournalCopyBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

[[nodiscard]] constexpr size_t JournalBytes(uint32_t slots) {
  return kJournalHeaderBytes +
         size_t{slots} * kJournalCopies * kJournalCopyBytes;
}

// A record as it was committed last.
struct JournalRecord {
  uint32_t slot = 0;
  uint16_t kind = 0;  // never 0
  uint64_t commit = 0;
  std::string contents;

  friend bool operator==(const JournalRecord&, const JournalRecord&) = default;
};

struct JournalContents {
  std::string id;
  uint32_t format = 0;
  uint32_t slots = 0;
  uint64_t committed = 0;              // commits
  std::vector<JournalRecord> records;  // by slot
  // Slots whose last committed copy cannot be read: what they said is lost.
  // Never because a broker died.
  std::vector<uint32_t> damaged;
  // Copies of a commit that never came.
  uint32_t torn = 0;
  bool unwritten = false;  // known to be as FormatJournal has left it
};

// Reads a journal, whatever it holds. Nobody writes to `memory` meanwhile. It
// must be aligned to 8 bytes.
//   INVALID_ARGUMENT     no journal
//   FAILED_PRECONDITION  written by a newer release, whose records this one
//                        does not know
//   DATA_LOSS            its header is damaged, or it is shorter than that says,
//                        or nobody can tell which commit was the last
[[nodiscard]] absl::StatusOr<JournalContents> ReadJournal(
    absl::string_view memory);

// The same of one that nobody has written to since FormatJournal: its slots are
// not looked at, which takes long where there are many.
[[nodiscard]] absl::StatusOr<JournalContents> ReadUnwrittenJournal(
    absl::string_view memory);

// --- For the writer.

// Writes the header of an empty journal into zeroed memory of JournalBytes.
void FormatJournal(absl::string_view id, uint32_t slots, char* memory);
[[nodiscard]] uint32_t ChecksumOf(absl::string_view journal_id,
                                  const JournalCopy& copy);
// `commit`: below 2^48, which takes a commit each microsecond for nine years.
[[nodiscard]] uint64_t CommitWord(absl::string_view journal_id,
                                  uint64_t commit);
[[nodiscard]] constexpr uint64_t CommitOf(uint64_t word) {
  return word & ((uint64_t{1} << 48) - 1);
}
[[nodiscard]] inline std::atomic<uint64_t>& CommitWordIn(char* memory) {
  return *reinterpret_cast<std::atomic<uint64_t>*>(memory + kJournalCommitAt);
}
// `copy`: 0 or 1.
[[nodiscard]] inline JournalCopy& CopyOf(char* memory, uint32_t slot,
                                         size_t copy) {
  return *reinterpret_cast<JournalCopy*>(
      memory + kJournalHeaderBytes +
      (size_t{slot} * kJournalCopies + copy) * kJournalCopyBytes);
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_JOURNAL_FORMAT_H_
