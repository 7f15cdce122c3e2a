#ifndef GMB_BROKER_STORE_REFUSED_CHANGES_H_
#define GMB_BROKER_STORE_REFUSED_CHANGES_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "broker/declared/declared.h"
#include "broker/store/audit_record.h"
#include "broker/store/state_on_disk.h"

namespace gmb::broker {

// A refused change, or the record of a refused action, that may be on the disk,
// where the next start, and readers of the audit log, would find it. It is taken
// out again once the disk can be read and written: each use of the store tries,
// and nothing is written before that. Not thread-safe.
class RefusedChanges {
 public:
  // The disk failed at this change. The one before it is settled.
  void AddChange(const AuditRecord& audit, const Declared& wanted,
                 const Declared& in_force);
  // Of an action that was refused.
  void AddRecord(const AuditRecord& record) { records_.push_back(record); }
  // This comes into force: then a change that wanted it is true.
  void Accept(const Declared& in_force);

  // Takes out what is left. After an error all that could not be taken out is
  // there still.
  absl::Status Settle(const Declared& in_force, StateOnDisk* disk);

  [[nodiscard]] bool empty() const {
    return !change_.has_value() && records_.empty();
  }
  [[nodiscard]] bool Has(const AuditRecord& record) const;

 private:
  // A change that was refused when the disk failed, and may be there.
  struct Doubtful {
    AuditRecord audit;
    Declared wanted;
    AuditRecord taken_back;  // says so once it is
  };

  absl::Status TakeBack(const Declared& in_force, StateOnDisk* disk);
  absl::Status TakeOutRecords(StateOnDisk* disk);

  std::optional<Doubtful> change_;
  std::vector<AuditRecord> records_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_REFUSED_CHANGES_H_
