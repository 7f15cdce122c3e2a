// Operators write for a time, and give fields back to the file.
#include <algorithm>

#include "broker/declared/merge.h"

namespace gmb::broker {

void WriteUntil(const std::string& name, const Fields& fields,
                const Source& source, absl::Time at, absl::Time until,
                Declared* declared) {
  const auto found = declared->tenants.find(name);
  if (found == declared->tenants.end()) return;
  for (const auto& [field, value] : fields) {
    const Written* const last = InForce(found->second, field);
    if (last != nullptr && last->value == value && !last->until.has_value())
      continue;
    PutWritten(field,
               {.value = value,
                .source = {Source::Writer::kOverride, source.name},
                .at = at,
                .order = declared->next_order++,
                .until = until},
               &found->second);
  }
}

void Reset(const std::string& name, const std::set<std::string>& fields,
           Declared* declared) {
  const auto found = declared->tenants.find(name);
  if (found == declared->tenants.end()) return;
  bool any = false;
  for (const std::string& field : fields) {
    const auto writes = found->second.fields.find(field);
    if (writes == found->second.fields.end()) continue;
    any |= std::erase_if(writes->second, [](const Written& written) {
             return written.source.writer != Source::Writer::kFile;
           }) > 0;
    if (writes->second.empty()) found->second.fields.erase(writes);
  }
  if (any) ++declared->next_order;
}

std::optional<absl::Time> NextExpiry(const Declared& declared) {
  std::optional<absl::Time> next;
  for (const auto& [name, subject] : declared.tenants) {
    for (const auto& [field, writes] : subject.fields) {
      for (const Written& written : writes) {
        if (written.until.has_value())
          next = std::min(next.value_or(*written.until), *written.until);
      }
    }
  }
  return next;
}

std::set<std::string> Expire(absl::Time now, Declared* declared) {
  std::set<std::string> changed;
  for (auto& [name, subject] : declared->tenants) {
    for (auto field = subject.fields.begin(); field != subject.fields.end();) {
      const auto over =
          std::erase_if(field->second, [now](const Written& written) {
            return written.until.has_value() && *written.until <= now;
          });
      if (over > 0) changed.insert(name);
      field = field->second.empty() ? subject.fields.erase(field)
                                    : std::next(field);
    }
  }
  if (!changed.empty()) ++declared->next_order;
  return changed;
}

}  // namespace gmb::broker
