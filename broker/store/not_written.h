#ifndef GMB_BROKER_STORE_NOT_WRITTEN_H_
#define GMB_BROKER_STORE_NOT_WRITTEN_H_

#include "absl/status/status.h"
#include "broker/store/audit_record.h"

namespace gmb::broker {

// Refused changes are the operator's to see; that the disk refuses them is for
// all who look after the broker.
void LogNotWritten(const AuditRecord& record, const absl::Status& why);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_NOT_WRITTEN_H_
