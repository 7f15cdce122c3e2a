#ifndef GMB_BROKER_REPORT_NEW_FINDING_H_
#define GMB_BROKER_REPORT_NEW_FINDING_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::report {

// Of findings that differ by a tenant alone; the rest is counted.
inline constexpr size_t kMostAlike = 100;

[[nodiscard]] inline v1::Finding NewFinding(v1::Finding::Severity severity,
                                            absl::string_view subject,
                                            std::string message) {
  v1::Finding finding;
  finding.set_severity(severity);
  finding.set_subject(std::string(subject));
  finding.set_message(std::move(message));
  return finding;
}

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_NEW_FINDING_H_
