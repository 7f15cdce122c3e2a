// Guarantees and limits of different sources, which may not fit together.
#include "broker/declared/conflict.h"

#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmb::broker {
namespace {

std::string Words(const std::string& field, const Written& written) {
  return absl::StrCat(
      field, "=", written.value, " is of ",
      written.source.writer == Source::Writer::kFile ? "the " : "",
      ToText(written.source));
}

// A guarantee and the limit beside it, of different sources.
struct Pair {
  std::string words;
  bool is_above = false;
};

bool IsAbove(const std::string& guarantee, const std::string& limit) {
  const std::optional<quota::Amount> g = ReadAmount(guarantee);
  const std::optional<quota::Amount> l = ReadAmount(limit);
  if (!g.has_value() || !l.has_value() || g->is_fraction() != l->is_fraction())
    return false;
  return g->is_fraction() ? g->fraction() > l->fraction()
                          : g->bytes() > l->bytes();
}

std::vector<Pair> PairsOf(const Subject& subject) {
  std::vector<Pair> all;
  for (const auto& [field, writes] : subject.fields) {
    if (!absl::EndsWith(field, "guarantee")) continue;
    const std::string other =
        absl::StrCat(field.substr(0, field.rfind("guarantee")), "limit");
    const Written* const guarantee = InForce(subject, field);
    const Written* limit = InForce(subject, other);
    // A device without a limit of its own has that of every device.
    if (limit == nullptr) limit = InForce(subject, "limit");
    if (guarantee == nullptr || limit == nullptr ||
        guarantee->source == limit->source)
      continue;
    all.push_back(
        {absl::StrCat(Words(field, *guarantee), ", ", Words(other, *limit)),
         IsAbove(guarantee->value, limit->value)});
  }
  return all;
}

}  // namespace

std::string DifferentSources(const Subject& subject) {
  std::vector<std::string> all;
  for (const Pair& pair : PairsOf(subject)) all.push_back(pair.words);
  return absl::StrJoin(all, "; ");
}

absl::Status CheckConflicts(const Declared& declared) {
  for (const auto& [name, subject] : declared.tenants) {
    if (subject.deleted) continue;
    for (const Pair& pair : PairsOf(subject)) {
      if (!pair.is_above) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "tenant ", name, ": the guarantee is above the limit: ", pair.words,
          ": change one of them where it was written"));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
