#ifndef GMB_BROKER_KEEPING_ADOPTION_MARKS_H_
#define GMB_BROKER_KEEPING_ADOPTION_MARKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/journal_writer.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/record_parts.h"

namespace gmb::broker {

// Which record a broker has in hand while it takes over, in memory that
// outlives it: a record that ends each broker that touches it is known by the
// next one.
//
// Take and LetGo write to memory alone and make no system call: for use under
// the core's lock. Not thread-safe.
class AdoptionMarks {
 public:
  // So many deaths with a record in hand, and it is set aside.
  static constexpr uint32_t kDeaths = 2;
  // Its name in the keeper.
  static constexpr absl::string_view kKey = "adoption";

  // The step that is taken with a record, so that one that cannot even be read
  // is told from one whose contents are at fault.
  enum class Step : uint16_t { kNone = 0, kReading = 1, kTaking = 2 };

  // `last`: the memory of a broker that has died before it was done; null:
  // there is none. One that cannot be read counts as none.
  static absl::StatusOr<std::unique_ptr<AdoptionMarks>> Begin(
      const SharedFd& last);

  // Whether brokers have died of it.
  [[nodiscard]] bool IsPoison(Step step, const RecordKey& key) const;
  // It is in hand, instead of the one before.
  void Take(Step step, const RecordKey& key);
  // None is: a process that ends now does not end because of a record. Allocates
  // nothing where one was in hand.
  void LetGo() { Hold({}, in_nobodys_hand_); }

  [[nodiscard]] int fd() const { return file_.fd(); }
  // It is other memory than the last one's.
  [[nodiscard]] bool is_new() const { return is_new_; }

 private:
  using Mark = std::pair<Step, RecordKey>;
  struct Deaths {
    uint32_t slot = 0;
    uint32_t count = 0;
  };

  AdoptionMarks(JournalFile file, const JournalContents& found, bool is_new);
  static std::unique_ptr<AdoptionMarks> GoOn(const SharedFd& last);
  // True: all that was found is such marks, and there is room for more.
  [[nodiscard]] bool Read(const JournalContents& found);
  void Count(const Mark& mark);
  void Hold(const Mark& mark, absl::string_view encoded);

  const JournalFile file_;
  JournalWriter writer_;
  const bool is_new_;
  const std::string in_nobodys_hand_;  // encoded
  uint32_t in_hand_slot_ = 0;
  Mark in_hand_{};
  std::map<Mark, Deaths> deaths_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_ADOPTION_MARKS_H_
