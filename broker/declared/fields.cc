// A tenant's policy as fields of text, and back.
#include "broker/declared/fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kDevices = "devices/";
// Of a fraction that no percentage comes to exactly.
constexpr absl::string_view kShare = " share";

// The shortest text without an exponent that is read as the same number, if
// there is one.
std::string NumberText(double number) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, number);
    double read = 0;
    const bool is_plain = text.find('e') == std::string::npos;
    if (is_plain && absl::SimpleAtod(text, &read) && read == number)
      return text;
  }
  return absl::StrFormat("%.17g", number);
}

std::string UidsText(std::vector<uint32_t> uids) {
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  return absl::StrJoin(uids, ",");
}

void PutQuota(const std::string& prefix, const quota::TenantQuota& quota,
              Fields* fields) {
  (*fields)[prefix + "guarantee"] = WriteAmount(quota.guarantee);
  (*fields)[prefix + "limit"] = WriteAmount(quota.limit);
  (*fields)[prefix + "weight"] = NumberText(quota.weight);
}

void Read(absl::string_view text, quota::Amount* amount) {
  if (const auto read = ReadAmount(text)) *amount = *read;
}
void Read(absl::string_view text, uint32_t* number) {
  uint32_t read = 0;
  if (absl::SimpleAtoi(text, &read)) *number = read;
}
void Read(absl::string_view text, double* number) {
  double read = 0;
  if (absl::SimpleAtod(text, &read)) *number = read;
}
void Read(absl::string_view text, quota::Nanoseconds* time) {
  int64_t read = 0;
  if (absl::ConsumeSuffix(&text, "ns") && absl::SimpleAtoi(text, &read))
    *time = quota::Nanoseconds(read);
}
void Read(absl::string_view text, std::vector<uint32_t>* uids) {
  uids->clear();
  for (const absl::string_view word :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    uint32_t uid = 0;
    if (absl::SimpleAtoi(word, &uid)) uids->push_back(uid);
  }
}

void ReadQuota(absl::string_view field, absl::string_view text,
               quota::TenantQuota* quota) {
  if (field == "guarantee") Read(text, &quota->guarantee);
  if (field == "limit") Read(text, &quota->limit);
  if (field == "weight") Read(text, &quota->weight);
}

void ReadOwn(absl::string_view field, absl::string_view text,
             TenantPolicy* policy) {
  ReadQuota(field, text, &policy->quota);
  if (field == "max_handles") Read(text, &policy->max_handles);
  if (field == "max_sessions") Read(text, &policy->max_sessions);
  if (field == "may_terminate") policy->reclaim.may_terminate = text == "true";
  if (field == "min_residency") Read(text, &policy->reclaim.min_residency);
  if (field == "pause_grace") Read(text, &policy->reclaim.pause_grace);
  if (field == "host_limit") Read(text, &policy->reclaim.host_limit);
  if (field == "uids") Read(text, &policy->uids);
}

TenantPolicy Plain(const std::string& name) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota.limit = quota::Amount::Fraction(1);
  return policy;
}

}  // namespace

std::string WriteAmount(const quota::Amount& amount) {
  if (!amount.is_fraction()) return absl::StrCat(amount.bytes());
  // The shortest percentage that is read as the same fraction.
  for (int digits = 1; digits <= 17; ++digits) {
    std::string percent =
        absl::StrFormat("%.*g%%", digits, 100 * amount.fraction());
    const bool is_plain = percent.find('e') == std::string::npos;
    if (is_plain && ReadAmount(percent) == amount) return percent;
  }
  return absl::StrCat(NumberText(amount.fraction()), kShare);
}

std::optional<quota::Amount> ReadAmount(absl::string_view text) {
  double number = 0;
  if (absl::ConsumeSuffix(&text, kShare)) {
    if (!absl::SimpleAtod(text, &number)) return std::nullopt;
    return quota::Amount::Fraction(number);
  }
  if (absl::ConsumeSuffix(&text, "%")) {
    if (!absl::SimpleAtod(text, &number)) return std::nullopt;
    return quota::Amount::Fraction(number / 100);
  }
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(text, &bytes)) return std::nullopt;
  return quota::Amount::Bytes(bytes);
}

std::string InWords(absl::string_view field, const std::string& value) {
  if (value.empty()) return "none";
  absl::string_view text = value;
  int64_t time = 0;
  if (absl::ConsumeSuffix(&text, "ns") && absl::SimpleAtoi(text, &time)) {
    return time == 0 ? "0s" : absl::FormatDuration(absl::Nanoseconds(time));
  }
  uint64_t bytes = 0;
  const bool is_amount = absl::EndsWith(field, "guarantee") ||
                         absl::EndsWith(field, "limit") || field == kPoolSize;
  if (!is_amount || !absl::SimpleAtoi(value, &bytes) || bytes == 0)
    return value;
  const char* unit = "";
  for (const char* const larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return absl::StrCat(bytes, unit);
}

Fields FieldsOf(const TenantPolicy& policy) {
  const ReclaimPolicy& reclaim = policy.reclaim;
  Fields fields;
  PutQuota("", policy.quota, &fields);
  for (const auto& [device, quota] : policy.device_quotas)
    PutQuota(absl::StrCat(kDevices, device, "/"), quota, &fields);
  fields["max_handles"] = absl::StrCat(policy.max_handles);
  fields["max_sessions"] = absl::StrCat(policy.max_sessions);
  fields["may_terminate"] = reclaim.may_terminate ? "true" : "false";
  fields["min_residency"] = absl::StrCat(reclaim.min_residency.count(), "ns");
  fields["pause_grace"] = absl::StrCat(reclaim.pause_grace.count(), "ns");
  fields["host_limit"] = WriteAmount(reclaim.host_limit);
  fields["uids"] = UidsText(policy.uids);
  return fields;
}

TenantPolicy PolicyOf(const std::string& name, const Fields& fields) {
  TenantPolicy policy = Plain(name);
  for (const auto& [field, text] : fields) ReadOwn(field, text, &policy);
  // Then the devices, over what holds everywhere.
  for (const auto& [field, text] : fields) {
    absl::string_view rest = field;
    const size_t slash = rest.rfind('/');
    if (!absl::ConsumePrefix(&rest, kDevices) || slash < kDevices.size())
      continue;
    const std::string device(rest.substr(0, slash - kDevices.size()));
    quota::TenantQuota& quota =
        policy.device_quotas.try_emplace(device, policy.quota).first->second;
    ReadQuota(field.substr(slash + 1), text, &quota);
  }
  return policy;
}

std::optional<std::string> DefaultOf(const std::string& field) {
  static const Fields* const kDefaults = new Fields(FieldsOf(Plain("")));
  const auto found = kDefaults->find(field);
  if (found == kDefaults->end()) return std::nullopt;
  return found->second;
}

}  // namespace gmb::broker
