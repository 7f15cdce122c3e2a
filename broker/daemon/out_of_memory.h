#ifndef GMB_BROKER_DAEMON_OUT_OF_MEMORY_H_
#define GMB_BROKER_DAEMON_OUT_OF_MEMORY_H_

#include "broker/keeping/adoption_marks.h"

namespace gmb::broker {

// From now on an allocation that fails ends the process at once, with a line on
// standard error, as a kill would: with a keeper the next broker goes on.
void EndWhenOutOfMemory();

// While one lives, such an end is not taken for the fault of the record that is
// in hand. One at a time; `marks` outlives it.
class BlamesNoRecord {
 public:
  explicit BlamesNoRecord(AdoptionMarks* marks);
  ~BlamesNoRecord();
  BlamesNoRecord(const BlamesNoRecord&) = delete;
  BlamesNoRecord& operator=(const BlamesNoRecord&) = delete;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_OUT_OF_MEMORY_H_
