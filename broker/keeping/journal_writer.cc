// Writes down each promise of the broker before anybody is told of it.
#include "broker/keeping/journal_writer.h"

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

// Death comes between two instructions, and the memory outlives it: the
// compiler is to leave the order of the stores alone.
void KeepOrder() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace

JournalWriter::JournalWriter(char* memory, const JournalContents& found,
                             std::function<void()> stored)
    : memory_(memory),
      id_(found.id),
      stored_(std::move(stored)),
      committed_(found.committed),
      places_(found.slots) {
  std::vector<bool> used(found.slots);
  for (const JournalRecord& record : found.records) used[record.slot] = true;
  for (const uint32_t slot : found.damaged) used[slot] = true;
  for (uint32_t slot = found.slots; slot-- > 0;) {
    if (!used[slot]) free_.push_back(slot);
    if (found.unwritten) continue;
    uint64_t newest = 0;
    for (uint8_t i = 0; i < kJournalCopies; ++i) {
      std::atomic<uint64_t>& commit = CopyOf(memory_, slot, i).commit;
      const uint64_t number = CommitOf(commit.load(std::memory_order_relaxed));
      // Else the next commit, which has the same number, would make it valid.
      if (number > committed_) {
        commit.store(0, std::memory_order_relaxed);
        Stored();
      } else if (number > newest) {
        newest = number;
        places_[slot].valid = i;
      }
    }
  }
  KeepOrder();
}

absl::StatusOr<uint32_t> JournalWriter::NewSlot() {
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the journal is full: all of its ", places_.size(),
                     " records are used"));
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

absl::Status JournalWriter::Write(uint32_t slot, uint16_t kind,
                                  absl::string_view contents) {
  if (slot >= places_.size() || kind == 0 ||
      contents.size() > kJournalContentsBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("no record of the journal: slot ", slot, ", kind ", kind,
                     ", ", contents.size(), " bytes"));
  }
  WriteCopy(slot, kind, contents);
  places_[slot].freed = false;
  return absl::OkStatus();
}

void JournalWriter::Free(uint32_t slot) {
  WriteCopy(slot, 0, "");
  places_[slot].freed = true;
}

void JournalWriter::WriteCopy(uint32_t slot, uint16_t kind,
                              absl::string_view contents) {
  Place& place = places_[slot];
  if (!place.written) written_.push_back(slot);
  place.written = true;
  JournalCopy& copy = CopyOf(memory_, slot, 1 - place.valid);
  copy.commit.store(CommitWord(id_, committed_ + 1), std::memory_order_relaxed);
  KeepOrder();
  Stored();
  copy.slot = slot;
  copy.kind = kind;
  copy.bytes = static_cast<uint16_t>(contents.size());
  copy.reserved = 0;
  copy.reserved2 = 0;
  copy.contents.fill(0);
  contents.copy(copy.contents.data(), copy.contents.size());
  KeepOrder();
  Stored();
  copy.checksum = ChecksumOf(id_, copy);
  KeepOrder();
  Stored();
}

void JournalWriter::Commit() {
  if (written_.empty()) return;
  ++committed_;
  KeepOrder();
  CommitWordIn(memory_).store(CommitWord(id_, committed_),
                              std::memory_order_release);
  Stored();
  for (const uint32_t slot : written_) {
    Place& place = places_[slot];
    place.valid = 1 - place.valid;
    if (place.freed) free_.push_back(slot);
    place = {.valid = place.valid};
  }
  written_.clear();
}

}  // namespace gmb::broker
