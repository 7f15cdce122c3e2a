#ifndef GMB_BROKER_STORE_AUDIT_RECORD_H_
#define GMB_BROKER_STORE_AUDIT_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace gmb::broker {

// One thing that an operator did.
struct AuditRecord {
  absl::Time at;
  std::string operator_name;  // "uid 0, pid 4711 (gmb)"
  std::string action;         // "set_tenant"
  std::string subject;        // the tenant's name or the device's UUID
  std::string detail;
  int64_t id = 0;  // rises, from 1; given by the store
};

// Which records are listed.
struct AuditFilter {
  absl::Time since = absl::InfinitePast();
  // Also those that changed several at once, this one among them (the detail
  // is then as ChangesText has it). Empty: all.
  std::string subject;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_AUDIT_RECORD_H_
