#ifndef GMB_BROKER_DECLARED_PENDING_H_
#define GMB_BROKER_DECLARED_PENDING_H_

#include <optional>
#include <string>
#include <vector>

#include "broker/declared/declared.h"
#include "broker/declared/merge.h"

namespace gmb::broker {

// A field that the file has changed and that is not written yet, since it would
// take more from processes than the file may.
struct PendingField {
  std::string tenant;
  std::string field;
  std::string device;                 // on which it would take bytes; its UUID
  std::optional<std::string> wanted;  // the file's value; none: without one
  std::optional<Written> in_force;    // when the file was read
  absl::Time at;                      // when that was

  friend bool operator==(const PendingField&, const PendingField&) = default;
};

// Keeps the tenant's limit on the device in `next` as it was in `before`, into
// which the file was merged as `merged`. So the file's next merge finds the
// change again. Returns what waits. `next` begins as `merged`.
[[nodiscard]] PendingField KeepLimit(const std::string& tenant,
                                     const std::string& device,
                                     const Declared& before,
                                     const Declared& merged, absl::Time at,
                                     Declared* next);

// Somebody has written the field for good since the file was read: that one was
// the last, and the file's value is put beneath. Returns whether it was so.
bool YieldToLaterWrites(const PendingField& pending, Declared* declared);

// An operator has written the field for a time since the file was read: the
// file's value waits for the end of that, as it may take from processes then.
// Puts what the file said as last applied into `file`. Returns whether it was
// so; not, if the file wants something else by now.
bool WaitForItsEnd(const PendingField& pending, const Declared& declared,
                   FileState* file);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_PENDING_H_
