#ifndef GMB_BROKER_KEEPING_RECORD_JOURNAL_H_
#define GMB_BROKER_KEEPING_RECORD_JOURNAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/core/journal.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/journal_writer.h"
#include "broker/keeping/record_parts.h"

namespace gmb::broker {

// Writes what the machine promises into a journal: one commit a turn, and of a
// record only the parts that have changed.
//
// Each broker has a journal of its own, which begins with what it takes over:
// so its size is this broker's, and no damage is carried on.
//
// A record for which no slot is left is not kept, and the broker goes on: it is
// written as soon as there is room again, with a later commit. Until then the
// sessions that have such a lease are not in the journal either: a successor
// would go on with them and give what their lease has to others.
//
// Commit is called under the core's lock, and is not thread-safe; left_out() is.
class RecordJournal : public Journal {
 public:
  // `file`: a new one. `taken_over` is committed to it at once.
  // RESOURCE_EXHAUSTED: there is no room for all of that. `stored`: for tests
  // (JournalWriter).
  static absl::StatusOr<std::unique_ptr<RecordJournal>> Begin(
      JournalFile file, const Records& taken_over,
      std::function<void()> stored = nullptr);

  // Until the turn that adopts nothing is written: what it took over stays true.
  // That turn has the next generation, and names all sessions and leases that
  // go on; the others are gone with it.
  void AwaitAdoption() { awaits_adoption_ = true; }

  // How many slots a journal of so many slabs in leases, and sessions, needs:
  // generous, since a record of usual names takes one.
  [[nodiscard]] static uint32_t SlotsFor(uint64_t max_handles,
                                         uint64_t max_sessions);

  void Commit(const RecordChanges& changes) override;

  // Records that are not in the journal, for lack of slots: what they say would
  // be lost with this broker.
  [[nodiscard]] size_t left_out() const {
    return left_out_count_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const JournalFile& file() const { return file_; }

 private:
  struct Written {
    std::string bytes;
    std::vector<uint32_t> slots;  // none: it is left out
    std::vector<uint64_t> users;  // of a lease: sessions
  };

  RecordJournal(JournalFile file, const Records& taken_over,
                const JournalContents& empty, std::function<void()> stored);

  void DropAllBut(const RecordChanges& changes);
  void Write(const RecordKey& key, std::string bytes,
             std::vector<uint64_t> users = {});
  [[nodiscard]] bool HasRoom(const RecordKey& key, size_t more) const;
  void LeaveOut(const RecordKey& key, Written* record);
  void OnFits(const RecordKey& key, const Written& record);
  void Fit(const RecordKey& key, Written* record, std::string bytes);
  void Remove(const RecordKey& key);
  void RetryLeftOut(RecordKind kind);
  void Free(Written* record, size_t from);
  uint64_t NumberOf(const std::string& device);

  const JournalFile file_;
  JournalWriter writer_;
  const uint64_t generation_;  // of the broker before
  bool awaits_adoption_ = false;
  absl::flat_hash_map<RecordKey, Written> written_;
  absl::flat_hash_map<std::string, uint64_t> pools_;  // their numbers
  absl::flat_hash_set<RecordKey> left_out_;
  // Sessions with leases that are left out: how many.
  absl::flat_hash_map<uint64_t, size_t> short_of_;
  std::atomic<size_t> left_out_count_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_RECORD_JOURNAL_H_
