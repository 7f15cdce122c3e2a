// The broker's start: a YAML file in which every mistake has its place.
#include "broker/config/yaml_map.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/values.h"

namespace gmb::broker {
namespace {

// Changes of one letter that make `b` of `a` (Levenshtein).
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

void ConfigErrors::Add(const YAML::Mark& mark, absl::string_view path,
                       absl::string_view message) {
  // A file of nothing but mistakes need not be answered in full.
  constexpr size_t kMost = 50;
  if (lines_.size() == kMost)
    lines_.push_back(absl::StrCat(file_, ": there are more errors"));
  if (lines_.size() > kMost) return;
  std::string line = file_;
  if (!mark.is_null())
    absl::StrAppend(&line, ":", mark.line + 1, ":", mark.column + 1);
  if (!path.empty()) absl::StrAppend(&line, ": ", path);
  absl::StrAppend(&line, ": ", message);
  lines_.push_back(std::move(line));
}

absl::Status ConfigErrors::ToStatus() const {
  return lines_.empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

std::string NearestWord(absl::string_view word,
                        const std::set<std::string, std::less<>>& known) {
  std::string nearest;
  size_t least = 3;  // further away is another word
  if (word.size() > 64) return nearest;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

YamlMap::YamlMap(const YamlValue& value, ConfigErrors* errors)
    : errors_(errors), self_(value) {
  if (!value.node.IsMap()) {
    errors_->Add(value.node.Mark(), value.path,
                 "must be keys with values, one \"key: value\" a line");
    return;
  }
  for (const auto& entry : value.node) {
    if (!entry.first.IsScalar()) {
      errors_->Add(entry.first.Mark(), value.path, "a key must be a word");
      continue;
    }
    const std::string& key = entry.first.Scalar();
    if (!entries_.try_emplace(key, Entry{entry.first, entry.second}).second) {
      errors_->Add(entry.first.Mark(), PathOf(key), "the key is given twice");
    }
  }
}

std::string YamlMap::PathOf(absl::string_view key) const {
  const std::string shown = Shown(key);
  const absl::string_view bare =
      absl::string_view(shown).substr(1, shown.size() - 2);
  return self_.path.empty() ? std::string(bare)
                            : absl::StrCat(self_.path, ".", bare);
}

std::optional<YamlValue> YamlMap::Take(absl::string_view key) {
  asked_for_.insert(std::string(key));
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return std::nullopt;
  return YamlValue{entry->second.value, PathOf(key)};
}

std::optional<std::string> YamlMap::TakeText(absl::string_view key) {
  const std::optional<YamlValue> value = Take(key);
  return value.has_value() ? TextOf(*value, errors_) : std::nullopt;
}

void YamlMap::AddError(absl::string_view key, absl::string_view message) {
  const auto entry = entries_.find(key);
  errors_->Add(
      entry == entries_.end() ? self_.node.Mark() : entry->second.value.Mark(),
      PathOf(key), message);
}

void YamlMap::Finish() {
  for (const auto& [key, entry] : entries_) {
    if (asked_for_.contains(key)) continue;
    const std::string nearest = NearestWord(key, asked_for_);
    errors_->Add(entry.key.Mark(), PathOf(key),
                 nearest.empty() ? absl::StrCat("unknown key; known are ",
                                                absl::StrJoin(asked_for_, ", "))
                                 : absl::StrCat("unknown key; did you mean ",
                                                nearest, "?"));
  }
}

std::vector<std::string> YamlMap::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

std::vector<YamlValue> ListOf(const YamlValue& value, ConfigErrors* errors) {
  std::vector<YamlValue> elements;
  if (!value.node.IsSequence()) {
    errors->Add(value.node.Mark(), value.path,
                "must be a list, one \"- \" a line");
    return elements;
  }
  for (const auto& element : value.node) {
    elements.push_back(
        {element, absl::StrCat(value.path, "[", elements.size(), "]")});
  }
  return elements;
}

std::optional<std::string> TextOf(const YamlValue& value,
                                  ConfigErrors* errors) {
  if (value.node.IsScalar()) return value.node.Scalar();
  errors->Add(value.node.Mark(), value.path,
              value.node.IsNull() ? "has no value: give one or remove the key"
                                  : "must be a single value");
  return std::nullopt;
}

}  // namespace gmb::broker
