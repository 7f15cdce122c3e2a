#ifndef GMB_BROKER_KEEPING_JOURNAL_LOOK_H_
#define GMB_BROKER_KEEPING_JOURNAL_LOOK_H_

#include "absl/status/statusor.h"
#include "broker/keeping/record_reader.h"

namespace gmb::broker {

// What the journal in this memory says, whose broker may live and write on.
// Nothing is written, so an fd to read is enough.
//
// Its broker changes records while they are read, so that one look may find a
// record cut in two, or a slab in two leases. The journal is looked at again
// then, up to a second or so: what every look sets aside is damaged. Errors are
// those of ReadJournal and ReadRecords. Blocks.
[[nodiscard]] absl::StatusOr<FoundRecords> LookAtJournal(int fd);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_JOURNAL_LOOK_H_
