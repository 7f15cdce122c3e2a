#ifndef GMB_BROKER_KEEPING_JOURNAL_WRITER_H_
#define GMB_BROKER_KEEPING_JOURNAL_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/keeping/journal_format.h"

namespace gmb::broker {

// Writes a journal: records change together, and become valid by one store. A
// process that dies between any two stores leaves the last commit as it was.
//
// Writes to memory alone, and makes no system call: for use under the core's
// lock. Not thread-safe.
class JournalWriter {
 public:
  // `memory` holds the journal that was read as `found`, without damaged slots,
  // and outlives the writer. Wipes what a dying broker has left half-written.
  // `stored`: for tests, called after each store that a death can follow.
  JournalWriter(char* memory, const JournalContents& found,
                std::function<void()> stored = nullptr);

  // A free slot, which is the caller's from now on. RESOURCE_EXHAUSTED: there
  // is none.
  [[nodiscard]] absl::StatusOr<uint32_t> NewSlot();

  // Sets the contents of the slot from the next commit on. `kind`: above 0;
  // `contents`: at most kJournalContentsBytes. INVALID_ARGUMENT otherwise, and
  // nothing is written.
  [[nodiscard]] absl::Status Write(uint32_t slot, uint16_t kind,
                                   absl::string_view contents);
  // It is free from the next commit on.
  void Free(uint32_t slot);
  // Makes all that was written since the last commit valid.
  void Commit();

  [[nodiscard]] uint64_t committed() const { return committed_; }
  [[nodiscard]] size_t free_slots() const { return free_.size(); }

 private:
  void WriteCopy(uint32_t slot, uint16_t kind, absl::string_view contents);
  void Stored() const {
    if (stored_ != nullptr) stored_();
  }

  char* const memory_;
  const std::string id_;
  const std::function<void()> stored_;
  uint64_t committed_;
  // Of each slot: the copy that is valid, and the one that was written since.
  struct Place {
    uint8_t valid = 1;  // of a slot that was never written either will do
    bool written = false;
    bool freed = false;
  };
  std::vector<Place> places_;
  std::vector<uint32_t> written_;
  std::vector<uint32_t> free_;  // the next one last
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_JOURNAL_WRITER_H_
