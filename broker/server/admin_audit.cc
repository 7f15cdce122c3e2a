// Operators read what operators did, and tried: the audit log, page by page.
#include "broker/server/admin_audit.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"
#include "broker/report/page.h"

namespace gmb::broker {
namespace {

// A list of so many uids, say: the rest is counted.
constexpr size_t kMostDetailBytes = size_t{16} << 10;

std::string Shortened(const std::string& detail) {
  if (detail.size() <= kMostDetailBytes) return detail;
  return absl::StrCat(absl::string_view(detail).substr(0, kMostDetailBytes),
                      "... (", detail.size() - kMostDetailBytes,
                      " bytes more in the database)");
}

}  // namespace

absl::StatusOr<v1::ListAuditResponse> AuditPage(
    QuotaStore* store, const v1::ListAuditRequest& request) {
  using Response = v1::ListAuditResponse;
  constexpr size_t kUsualRows = 100;
  AuditFilter filter{absl::InfinitePast(), request.subject()};
  if (request.has_since()) {
    filter.since = absl::FromUnixSeconds(request.since().seconds()) +
                   absl::Nanoseconds(request.since().nanos());
  }
  const auto slice = [store, &filter](report::Page* page, size_t most_rows,
                                      Response* response) {
    const absl::StatusOr<std::vector<AuditRecord>> records = store->ListAudit(
        static_cast<uint32_t>(most_rows),
        static_cast<int64_t>(report::NumberIn(page->after)), filter);
    if (!records.ok()) return records.status();
    for (const AuditRecord& record : *records) {
      v1::AuditEntry* entry = response->add_entries();
      *entry->mutable_at() = ToProto(record.at);
      entry->set_operator_name(record.operator_name);
      entry->set_action(record.action);
      entry->set_subject(record.subject);
      entry->set_detail(Shortened(record.detail));
      page->after = report::KeyOf({static_cast<uint64_t>(record.id)});
    }
    page->more = records->size() == most_rows;
    return absl::OkStatus();
  };
  return report::FillPage<Response>(
      {.list = "changes"}, request,
      [](const Response& response) -> auto& { return response.entries(); },
      slice, kUsualRows);
}

absl::Status RecordIfRefused(QuotaStore* store, AuditRecord audit,
                             const std::string& action,
                             const std::string& subject,
                             const absl::Status& done) {
  if (done.ok()) return done;
  audit.action = absl::StrCat(action, "_refused");
  audit.subject = subject;
  audit.detail = std::string(done.message());
  // The log has what the disk does not take.
  (void)store->Audit(
      audit, [] { return absl::OkStatus(); },
      QuotaStore::OnBadDisk::kActAnyway);
  return done;
}

}  // namespace gmb::broker
