#ifndef GMB_BROKER_REPORT_UNKILLABLE_H_
#define GMB_BROKER_REPORT_UNKILLABLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "broker/machine/state.h"
#include "broker/report/page.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::report {

// For `gmb doctor`: sessions that may be terminated and whose processes the
// broker cannot kill. They are looked for slice by slice.
class Unkillable {
 public:
  // Under the core's lock: as many as a slice may look at.
  void Look(const State& state, Page* page);
  // A finding a tenant, of which it names a session.
  void AddFindings(v1::DiagnoseResponse* response) const;

 private:
  struct Found {
    uint64_t first = 0;  // its id
    uint64_t sessions = 0;
  };
  std::map<std::string, Found> by_tenant_;
};

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_UNKILLABLE_H_
