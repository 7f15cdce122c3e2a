#ifndef GMB_BROKER_DECLARED_DECLARED_H_
#define GMB_BROKER_DECLARED_DECLARED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/declared/fields.h"

namespace gmb::broker {

// The writer that gave a field its value.
struct Source {
  // kOverride: an operator, for a time. The numbers are stored.
  enum class Writer { kFile, kApply, kOperator, kOverride };
  Writer writer = Writer::kFile;
  std::string name;  // of the apply, or who the operator is; empty: the file

  friend bool operator==(const Source&, const Source&) = default;
};
// "file", "apply web", "operator uid 0, pid 7 (gmb)".
[[nodiscard]] std::string ToText(const Source& source);

// The value that one of them wrote into a field.
struct Written {
  std::string value;
  Source source = {};
  absl::Time at = absl::UnixEpoch();
  // Rises with every write, also when the clock is set back. 0: before all
  // that was written.
  uint64_t order = 0;
  std::optional<absl::Time> until = {};  // none: for good

  friend bool operator==(const Written&, const Written&) = default;
};

// A tenant or a pool: who made it, and what was written into its fields, at
// most once by the file, by operators for good, by operators for a time, and by
// each apply. The last one of a field is in force.
struct Subject {
  Source maker;
  bool in_file = false;  // the file as last applied names it
  bool deleted = false;  // by an operator; what the file wrote is kept
  std::map<std::string, std::vector<Written>> fields;
  // A tenant's: all that was in force before the last change, for an undo.
  // Empty: it was not changed since it was made.
  Fields former = {};

  friend bool operator==(const Subject&, const Subject&) = default;
};

// The file made the tenant and does not name it any more: it goes with its last
// session.
[[nodiscard]] inline bool IsLeaving(const Subject& tenant) {
  return tenant.maker.writer == Source::Writer::kFile && !tenant.in_file;
}

// All that the file, applies and operators declare. A value.
struct Declared {
  bool file_applied = false;
  // Rises with each change, at the latest when it is stored: the revision.
  uint64_t next_order = 1;
  std::map<std::string, Subject> tenants;  // by name
  std::map<std::string, Subject> pools;    // by the device's UUID

  friend bool operator==(const Declared&, const Declared&) = default;
};

// The last that was written into the field. Null: nothing was.
[[nodiscard]] const Written* InForce(const Subject& subject,
                                     const std::string& field);
[[nodiscard]] Fields InForce(const Subject& subject);
// The value that the file wrote, as last applied. Null: none.
[[nodiscard]] const Written* ByFile(const Subject& subject,
                                    const std::string& field);

// Writes a field, over what the same source wrote before, and over what
// operators wrote for a time.
void PutWritten(const std::string& field, Written written, Subject* subject);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_DECLARED_H_
