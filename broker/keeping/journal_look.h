#ifndef GMB_BROKER_KEEPING_JOURNAL_LOOK_H_
#define GMB_BROKER_KEEPING_JOURNAL_LOOK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/keeping/record_reader.h"

namespace gmb::broker {

// Reads the journal in this memory, whose broker may live and write on. Nothing
// is written, so an fd to read is enough.
//
// Its broker changes records while they are read, so that one look may find a
// record cut in two, or a slab in two leases. The journal is looked at again
// then, up to a second or so: what every look sets aside is damaged. Errors are
// those of ReadJournal and ReadRecords. Blocks.
[[nodiscard]] absl::StatusOr<FoundRecords> LookAtJournal(int fd);

// How many of its slots have a record: while it is written, give or take what
// changes meanwhile. Errors are those of ReadJournal.
struct JournalFill {
  size_t used = 0;
  uint32_t slots = 0;
};
[[nodiscard]] absl::StatusOr<JournalFill> FillOfJournal(int fd);

// The journal that the keeper at this socket has, to be read alone, whoever
// writes it. NOT_FOUND: it has none. Errors are also those of
// KeeperLink::Connect.
[[nodiscard]] absl::StatusOr<base::UniqueFd> FetchJournal(
    const std::string& keeper_socket);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_JOURNAL_LOOK_H_
