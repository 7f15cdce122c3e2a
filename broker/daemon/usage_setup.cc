// The broker's start: what tenants use is put down.
#include "broker/daemon/usage_setup.h"

#include <utility>

#include "broker/log/logging.h"

namespace gmb::broker {

std::unique_ptr<UsageLedger> RecordUsage(const std::string& state_dir,
                                         metrics::EventCounts* counts,
                                         const Clock* clock) {
  std::string aside;
  auto store = UsageStore::Open(state_dir, clock->WallTime(), &aside);
  if (!aside.empty()) {
    LogEvent(LogLevel::kWarning, "usage_set_aside",
             {{"path", aside},
              {"message", "the file was damaged; usage begins anew"}});
  }
  if (!store.ok()) {
    LogEvent(LogLevel::kWarning, "usage_not_recorded",
             {{"message", store.status().message()}});
    return nullptr;
  }
  return std::make_unique<UsageLedger>(counts, clock, *std::move(store));
}

}  // namespace gmb::broker
