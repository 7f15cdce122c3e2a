#ifndef GMB_BROKER_CORE_JOURNAL_H_
#define GMB_BROKER_CORE_JOURNAL_H_

#include "broker/machine/records.h"

namespace gmb::broker {

// The promises of the machine, kept where a successor finds it.
class Journal {
 public:
  virtual ~Journal() = default;
  // All of it becomes true together, before anything else that the turn wants
  // is begun. Called under the core's lock: an implementation writes to memory
  // alone, and never blocks.
  virtual void Commit(const RecordChanges& changes) = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_JOURNAL_H_
