// Operators' changes that the disk did not take, in the log.
#include "broker/store/not_written.h"

#include "broker/log/logging.h"

namespace gmb::broker {

void LogNotWritten(const AuditRecord& record, const absl::Status& why) {
  LogEvent(LogLevel::kError, "state_not_written",
           {{"action", record.action},
            {"subject", record.subject},
            {"operator", record.operator_name},
            {"detail", record.detail},
            {"message", why.message()}});
}

}  // namespace gmb::broker
