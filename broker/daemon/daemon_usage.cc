// The broker's start: what tenants use is put down.
#include <string>

#include "broker/daemon/daemon.h"
#include "broker/log/logging.h"

namespace gmb::broker {

// Statistics: whatever is wrong with their file, the broker serves.
void Daemon::RecordUsage() {
  std::string aside;
  auto store = UsageStore::Open(config_.state_dir, clock_.WallTime(), &aside);
  if (!aside.empty()) {
    LogEvent(LogLevel::kWarning, "usage_set_aside",
             {{"path", aside},
              {"message", "the file was damaged; usage begins anew"}});
  }
  if (!store.ok()) {
    LogEvent(LogLevel::kWarning, "usage_not_recorded",
             {{"message", store.status().message()}});
    return;
  }
  usage_ = std::make_unique<UsageLedger>(event_counts_.get(), &clock_,
                                         *std::move(store));
}

}  // namespace gmb::broker
