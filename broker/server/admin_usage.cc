// Operators read what tenants used, day by day, page by page.
#include "broker/server/admin_usage.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/report/page.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// Of a row, in a page's token: no part has a slash.
std::string TextOf(const UsageKey& key) {
  return absl::StrCat(key.day, "/", key.tenant, "/", key.device);
}

std::optional<UsageKey> KeyFrom(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 2));
  UsageKey key;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &key.day))
    return std::nullopt;
  key.tenant = parts[1];
  key.device = parts[2];
  return key;
}

void Fill(const UsageKey& key, const Usage& usage, v1::TenantUsage* row) {
  row->set_day(DayText(key.day));
  row->set_tenant(key.tenant);
  row->set_device(key.device);
  row->set_peak_bytes(usage.peak_bytes);
  row->set_byte_seconds(usage.byte_seconds);
  row->set_granted(usage.granted);
  row->set_refused(usage.refused);
  row->set_evictions(usage.evictions);
  row->set_evicted_bytes(usage.evicted_bytes);
  row->set_restores(usage.restores);
  row->set_restored_bytes(usage.restored_bytes);
}

}  // namespace

absl::StatusOr<v1::ListUsageResponse> UsagePage(
    UsageLedger* usage, const v1::ListUsageRequest& request) {
  using Response = v1::ListUsageResponse;
  if (usage == nullptr) {
    return proto::MakeError(
        v1::BAD_STATE,
        "this broker records no usage: it could not open usage.db in its state "
        "directory at its start; its log says why (usage_not_recorded)");
  }
  const int64_t since =
      request.has_since()
          ? DayOf(absl::FromUnixSeconds(request.since().seconds()))
          : 0;
  const auto slice = [&](report::Page* page, size_t most_rows,
                         Response* response) {
    const auto rows =
        usage->List(since, request.tenant(), KeyFrom(page->after), most_rows);
    if (!rows.ok()) return rows.status();
    for (const auto& [key, row] : *rows) {
      Fill(key, row, response->add_usage());
      page->after = TextOf(key);
    }
    page->more = rows->size() == most_rows;
    return absl::OkStatus();
  };
  return report::FillPage<Response>(
      {.list = "days", .filter = request.tenant(), .numbers = 0}, request,
      [](const Response& response) -> auto& { return response.usage(); },
      slice);
}

}  // namespace gmb::broker
