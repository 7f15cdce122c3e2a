// The difference between two declared states, in words.
#include "broker/declared/changes.h"

#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace gmb::broker {
namespace {

using Subjects = std::map<std::string, Subject>;

// Null: there is none, or none that counts.
const Subject* Find(const Subjects& subjects, const std::string& name) {
  const auto found = subjects.find(name);
  return found == subjects.end() || found->second.deleted ? nullptr
                                                          : &found->second;
}

std::string Value(const Subject& subject, const std::string& field) {
  const Written* const last = InForce(subject, field);
  if (last == nullptr) return "none";
  if (!last->until.has_value()) return InWords(field, last->value);
  return absl::StrCat(InWords(field, last->value), " until ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *last->until,
                                       absl::UTCTimeZone()));
}

// The fields that differ from those of a tenant that nothing was declared of.
std::string Special(const Subject& subject) {
  std::vector<std::string> parts;
  for (const auto& [field, value] : InForce(subject)) {
    if (DefaultOf(field) != value)
      parts.push_back(absl::StrCat(field, " ", InWords(field, value)));
  }
  return parts.empty() ? "" : absl::StrCat(": ", absl::StrJoin(parts, ", "));
}

std::string ChangesOf(const std::string& name, const Subject& before,
                      const Subject& after) {
  std::set<std::string> names;
  for (const Subject* const subject : {&before, &after}) {
    for (const auto& [field, writes] : subject->fields) names.insert(field);
  }
  std::vector<std::string> parts;
  for (const std::string& field : names) {
    const std::string from = Value(before, field);
    const std::string to = Value(after, field);
    if (from != to) parts.push_back(absl::StrCat(field, " ", from, " -> ", to));
  }
  if (parts.empty()) return "";
  return absl::StrCat(name, ": ", absl::StrJoin(parts, ", "));
}

void AddChanges(const char* kind, const Subjects& before, const Subjects& after,
                std::vector<std::string>* all) {
  std::set<std::string> names;
  for (const Subjects* const subjects : {&before, &after}) {
    for (const auto& [name, subject] : *subjects) names.insert(name);
  }
  for (const std::string& name : names) {
    const Subject* const was = Find(before, name);
    const Subject* const is = Find(after, name);
    if (was == nullptr && is == nullptr) continue;
    if (was == nullptr) {
      all->push_back(absl::StrCat(kind, " ", name, " is new", Special(*is)));
    } else if (is == nullptr) {
      all->push_back(absl::StrCat(kind, " ", name, " is gone"));
    } else if (std::string changes = ChangesOf(name, *was, *is);
               !changes.empty()) {
      all->push_back(std::move(changes));
    }
  }
}

}  // namespace

std::string ChangesText(const Declared& before, const Declared& after) {
  std::vector<std::string> all;
  AddChanges("tenant", before.tenants, after.tenants, &all);
  AddChanges("pool", before.pools, after.pools, &all);
  return absl::StrJoin(all, "; ");
}

}  // namespace gmb::broker
