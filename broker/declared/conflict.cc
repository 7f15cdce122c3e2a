// Guarantees and limits of different sources, which may not fit together.
#include "broker/declared/conflict.h"

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

std::string Words(const std::string& field, const Written& written) {
  return absl::StrCat(
      field, "=", written.value, " is of ",
      written.source.writer == Source::Writer::kFile ? "the " : "",
      ToText(written.source));
}

// Those that are in force. A device without a value of its own has that of every
// device.
struct Pair {
  const Written* guarantee = nullptr;
  const Written* limit = nullptr;
  std::string guarantee_field;
  std::string limit_field;

  [[nodiscard]] bool complete() const {
    return guarantee != nullptr && limit != nullptr;
  }
  [[nodiscard]] std::string InWords() const {
    return absl::StrCat(Words(guarantee_field, *guarantee), ", ",
                        Words(limit_field, *limit));
  }
};

void Find(const Subject& subject, const std::string& where,
          const std::string& name, std::string* field, const Written** value) {
  *field = where + name;
  *value = InForce(subject, *field);
  if (*value != nullptr) return;
  *field = name;
  *value = InForce(subject, name);
}

// `where`: "devices/GPU-1/"; empty: on every device.
Pair PairAt(const Subject& subject, const std::string& where) {
  Pair pair;
  Find(subject, where, "guarantee", &pair.guarantee_field, &pair.guarantee);
  Find(subject, where, "limit", &pair.limit_field, &pair.limit);
  return pair;
}

std::set<std::string> PlacesOf(const Subject& subject) {
  std::set<std::string> places = {""};
  for (const auto& [field, writes] : subject.fields) {
    const bool is_quota =
        absl::EndsWith(field, "/guarantee") || absl::EndsWith(field, "/limit");
    if (absl::StartsWith(field, "devices/") && is_quota)
      places.insert(field.substr(0, field.rfind('/') + 1));
  }
  return places;
}

bool OfDifferentSources(const Pair& pair) {
  return pair.complete() && pair.guarantee->source != pair.limit->source;
}

bool WasSo(const Subject& before, const std::string& where, const Pair& pair) {
  const Pair was = PairAt(before, where);
  return was.complete() && was.guarantee->value == pair.guarantee->value &&
         was.limit->value == pair.limit->value;
}

bool IsAbove(const Pair& pair) {
  const std::optional<quota::Amount> g = ReadAmount(pair.guarantee->value);
  const std::optional<quota::Amount> l = ReadAmount(pair.limit->value);
  if (!g.has_value() || !l.has_value() || g->is_fraction() != l->is_fraction())
    return false;
  return g->is_fraction() ? g->fraction() > l->fraction()
                          : g->bytes() > l->bytes();
}

absl::Status CheckOne(const std::string& name, const Subject& before,
                      const Subject& next) {
  for (const std::string& where : PlacesOf(next)) {
    const Pair pair = PairAt(next, where);
    if (!OfDifferentSources(pair) || !IsAbove(pair) ||
        WasSo(before, where, pair))
      continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "tenant ", name, ": the guarantee is above the limit: ", pair.InWords(),
        ": change one of them where it was written"));
  }
  return absl::OkStatus();
}

// Without a tenant: if there is none, or it is deleted.
Declared Alone(const Declared& declared, const std::string& name) {
  Declared one;
  const auto found = declared.tenants.find(name);
  if (found != declared.tenants.end() && !found->second.deleted)
    one.tenants.insert(*found);
  return one;
}

}  // namespace

std::string DifferentSources(const Subject& subject) {
  std::vector<std::string> all;
  for (const std::string& where : PlacesOf(subject)) {
    const Pair pair = PairAt(subject, where);
    if (OfDifferentSources(pair)) all.push_back(pair.InWords());
  }
  return absl::StrJoin(all, "; ");
}

bool HasFormerPair(const Subject& before, const Subject& now) {
  for (const std::string& where : PlacesOf(now)) {
    const Pair pair = PairAt(now, where);
    if (OfDifferentSources(pair) && WasSo(before, where, pair)) return true;
  }
  return false;
}

absl::Status CheckConflicts(const Declared& before, const Declared& next) {
  for (const auto& [name, subject] : next.tenants) {
    if (subject.deleted) continue;
    const auto was = before.tenants.find(name);
    const bool is_known = was != before.tenants.end() && !was->second.deleted;
    const absl::Status checked =
        CheckOne(name, is_known ? was->second : Subject(), subject);
    if (!checked.ok()) return checked;
  }
  return absl::OkStatus();
}

absl::Status CheckConflictsToCome(const std::string& name,
                                  const Declared& before,
                                  const Declared& next) {
  Declared was = Alone(before, name);
  Declared is = Alone(next, name);
  while (const std::optional<absl::Time> end = NextExpiry(is)) {
    (void)Expire(*end, &was);
    (void)Expire(*end, &is);
    if (const absl::Status checked = CheckConflicts(was, is); !checked.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "once what was set for a time is over: ", checked.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
