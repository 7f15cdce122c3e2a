#ifndef GMB_BROKER_SERVER_STATE_FINDINGS_H_
#define GMB_BROKER_SERVER_STATE_FINDINGS_H_

#include <map>
#include <string>

#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Stored values that are not in force, by tenant or DroppedPool: a sentence
// each.
using DroppedValues = std::map<std::string, std::string>;
// No tenant is called so.
[[nodiscard]] inline std::string DroppedPool(const std::string& uuid) {
  return "pool:" + uuid;
}

// Adds a warning of each.
void AddDropped(const DroppedValues& dropped, v1::DiagnoseResponse* response);

// Adds that operators' changes cannot be stored now, if so. Waits for the disk:
// never call it on gRPC's threads or under a lock.
void AddStateFindings(QuotaStore* store, v1::DiagnoseResponse* response);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_STATE_FINDINGS_H_
