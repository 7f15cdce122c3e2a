#ifndef GMB_BROKER_KEEPING_RECORD_READER_H_
#define GMB_BROKER_KEEPING_RECORD_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/keeping/adoption_marks.h"
#include "broker/keeping/journal_format.h"
#include "broker/machine/records.h"

namespace gmb::broker {

struct FoundRecords {
  Records records;
  // The records that could not be read, or that contradict themselves or
  // another one, and why: one sentence each. They are not among `records`.
  std::vector<std::string> set_aside;
};

// Reads the records of a journal, whatever it holds. DATA_LOSS: it has records,
// and its head cannot be read: then nobody knows which numbers were given out,
// and nothing can be taken over. `marks`, unless it is null, is told which
// record is being read; one that brokers have died of then is set aside unread.
[[nodiscard]] absl::StatusOr<FoundRecords> ReadRecords(
    const JournalContents& journal, AdoptionMarks* marks = nullptr);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_RECORD_READER_H_
