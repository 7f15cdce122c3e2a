// For operators: whether what they change can be stored.
#include "broker/server/state_findings.h"

#include "absl/strings/str_cat.h"

namespace gmb::broker {

void AddDropped(const DroppedValues& dropped, v1::DiagnoseResponse* response) {
  for (const auto& [subject, sentence] : dropped) {
    v1::Finding* finding = response->add_findings();
    finding->set_severity(v1::Finding::WARNING);
    finding->set_subject("state");
    finding->set_message(sentence);
  }
}

void AddStateFindings(QuotaStore* store, v1::DiagnoseResponse* response) {
  const absl::Status disk = store->CheckDisk();
  v1::Finding* finding = response->add_findings();
  finding->set_subject("state");
  if (disk.ok()) {
    finding->set_severity(v1::Finding::OK);
    finding->set_message("the state directory takes operators' changes");
    return;
  }
  finding->set_severity(v1::Finding::PROBLEM);
  finding->set_message(absl::StrCat(
      disk.message(),
      ": operators' changes are refused, and what they drain or reclaim is in "
      "the log alone: free some space there, or make it writable"));
}

}  // namespace gmb::broker
