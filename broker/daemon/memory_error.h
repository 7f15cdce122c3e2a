#ifndef GMB_BROKER_DAEMON_MEMORY_ERROR_H_
#define GMB_BROKER_DAEMON_MEMORY_ERROR_H_

#include "broker/keeping/copy_mark.h"

namespace gmb::broker {

// While one lives, a memory error (a page that the machine cannot read any more,
// SIGBUS with BUS_MCEERR_AR) in the middle of a copy leaves its lease in `mark`,
// and a line on standard error. The process ends in any case, as it would have.
// One at a time; `mark` outlives it.
class MarksMemoryErrors {
 public:
  explicit MarksMemoryErrors(CopyMark* mark);
  ~MarksMemoryErrors();
  MarksMemoryErrors(const MarksMemoryErrors&) = delete;
  MarksMemoryErrors& operator=(const MarksMemoryErrors&) = delete;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_MEMORY_ERROR_H_
