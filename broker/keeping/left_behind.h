#ifndef GMB_BROKER_KEEPING_LEFT_BEHIND_H_
#define GMB_BROKER_KEEPING_LEFT_BEHIND_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/keeping/adoption_marks.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/kept_sessions.h"
#include "broker/machine/records.h"
#include "broker/machine/slab.h"

namespace gmb::broker {

// The things that the last broker has left in the keeper, each thing in its
// place.
struct LeftBehind {
  Records records;  // of sessions with a connection, and what they have
  std::vector<std::string>
      set_aside;  // FoundRecords, and what is no such thing
  std::map<uint64_t, KeptSession> sessions;  // by id
  // Sessions that are not among the records, although the journal has them,
  // and why. Their tenants are to be told.
  struct Refused {
    std::string tenant;
    std::string why;
  };
  std::map<uint64_t, Refused> refused;
  std::map<SlabId, Kept> slabs;
  SharedFd host;  // the host pool's memory; null: there was none
  // Of the journals and of what is nothing: to be removed.
  std::vector<std::string> old_keys;
  uint64_t last_journal = 0;

  [[nodiscard]] bool empty() const {
    return sessions.empty() && slabs.empty() && records.leases.empty();
  }
};

// Sorts what was fetched, and reads the journal. Where that cannot be read, or
// is missing, nothing can be taken over, and the message says what to do;
// FAILED_PRECONDITION: a newer release has written it.
//
// `marks`, unless it is null, knows the records that brokers have died of. Such
// a session, or the sessions that have such a lease, are refused.
[[nodiscard]] absl::StatusOr<LeftBehind> Sort(std::vector<Kept> all,
                                              AdoptionMarks* marks = nullptr);

// A memory error ended the last broker while it copied lease `id`: its sessions
// are refused, and its room in the host pool is given back to the machine, which
// uses a broken page no more. Of a lease that was not left it does nothing. The
// mark that names the lease stays in the keeper until another journal is there.
void RefuseDamaged(uint64_t id, LeftBehind* left);

inline constexpr absl::string_view kHostKey = "host";
// Each broker has a journal of its own; the highest number counts, and is put
// when it has all that the one before it says.
[[nodiscard]] std::string JournalKey(uint64_t number);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_LEFT_BEHIND_H_
