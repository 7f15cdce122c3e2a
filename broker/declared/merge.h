#ifndef GMB_BROKER_DECLARED_MERGE_H_
#define GMB_BROKER_DECLARED_MERGE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/declared/declared.h"
#include "broker/declared/fields.h"

namespace gmb::broker {

// The values that the configuration file has now. Each tenant has all fields of
// a policy.
struct FileState {
  std::map<std::string, Fields> tenants;  // by name
  std::map<std::string, Fields> pools;    // by the device's UUID
};

// The file compared with itself as last applied, and with what is in force.
struct FileMerge {
  Declared next;
  // The file made them and does not name them any more. They are still in
  // `next`: Forget them once they have no sessions.
  std::vector<std::string> leaving;
};

// The three-way merge. A field that changed in the file since it was last
// applied is written, and clears what others wrote into it; all other fields
// stay as they are. A tenant that somebody else made stays without the file,
// with the values it has.
//
// There is nothing to compare a file with that is the first to be applied: it
// is put beneath what others wrote, and takes back what is equal.
[[nodiscard]] FileMerge MergeFile(const Declared& now, const FileState& file,
                                  absl::Time at);

// An operator's change, or an apply's: writes those of the fields that are not so
// already. A device's fields that are left out are taken away as far as
// operators, or this apply, wrote them. A tenant that is new, or was deleted, is
// the source's then. Those of `named` are meant to be so for good, if they are so
// for a time. A device's field that nobody wrote, that is not named and is as on
// every device, stays so: it goes on with the value of every device.
void WriteFields(const std::string& name, const Fields& fields,
                 const Source& source, absl::Time at, Declared* declared,
                 const std::set<std::string>& named = {});
// An operator's change for a time: writes those of the fields that are not so
// for good already.
void WriteUntil(const std::string& name, const Fields& fields,
                const Source& source, absl::Time at, absl::Time until,
                Declared* declared);
// An apply does not name the tenant any more: takes away what it wrote, so that
// what was there before holds again. Returns whether the tenant was its own, and the
// file does not name it either: it is to go, and nothing of it was changed.
[[nodiscard]] bool Withdraw(const std::string& name, const Source& apply,
                            Declared* declared);
// Gives fields back to the file.
void Reset(const std::string& name, const std::set<std::string>& fields,
           Declared* declared);

// When the next of those that hold for a time is over; none: there is none.
[[nodiscard]] std::optional<absl::Time> NextExpiry(const Declared& declared);
// Takes those away whose time is over. Returns the tenants whose they were.
[[nodiscard]] std::set<std::string> Expire(absl::Time now, Declared* declared);
// As WriteFields, of a pool's size.
void WritePool(const std::string& device, const std::string& size,
               const Source& source, absl::Time at, Declared* declared);
// An operator deletes it. It stays deleted while the file names it.
void Delete(const std::string& name, Declared* declared);
// Nothing is left of it.
void Forget(const std::string& name, Declared* declared);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_MERGE_H_
