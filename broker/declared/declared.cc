// The writers of each field of tenants and pools, and the value in force.
#include "broker/declared/declared.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

using Writer = Source::Writer;

// Operators write into one place, whoever they are, and for a time into another
// one; each apply has its own.
bool SamePlace(const Source& a, const Source& b) {
  return a.writer == b.writer &&
         (a.writer != Writer::kApply || a.name == b.name);
}

}  // namespace

std::string ToText(const Source& source) {
  switch (source.writer) {
    case Writer::kFile:
      return "file";
    case Writer::kApply:
      return absl::StrCat("apply ", source.name);
    case Writer::kOperator:
    case Writer::kOverride:
      break;
  }
  return source.name.empty() ? "operator"
                             : absl::StrCat("operator ", source.name);
}

const Written* InForce(const Subject& subject, const std::string& field) {
  const auto found = subject.fields.find(field);
  if (found == subject.fields.end() || found->second.empty()) return nullptr;
  return &*std::max_element(
      found->second.begin(), found->second.end(),
      [](const Written& a, const Written& b) { return a.order < b.order; });
}

Fields InForce(const Subject& subject) {
  Fields fields;
  for (const auto& [field, writes] : subject.fields) {
    if (const Written* last = InForce(subject, field))
      fields[field] = last->value;
  }
  return fields;
}

const Written* ByFile(const Subject& subject, const std::string& field) {
  const auto found = subject.fields.find(field);
  if (found == subject.fields.end()) return nullptr;
  for (const Written& written : found->second) {
    if (written.source.writer == Writer::kFile) return &written;
  }
  return nullptr;
}

void PutWritten(const std::string& field, Written written, Subject* subject) {
  std::vector<Written>& writes = subject->fields[field];
  std::erase_if(writes, [&](const Written& other) {
    return SamePlace(other.source, written.source) ||
           (other.source.writer == Writer::kOverride &&
            other.order < written.order);
  });
  // In one order, so that equal states are equal.
  const auto behind =
      std::upper_bound(writes.begin(), writes.end(), written,
                       [](const Written& a, const Written& b) {
                         return std::tie(a.source.writer, a.source.name) <
                                std::tie(b.source.writer, b.source.name);
                       });
  writes.insert(behind, std::move(written));
}

}  // namespace gmb::broker
