// The file, applies and operators write into the fields of tenants and pools.
#include "broker/declared/merge.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"

namespace gmb::broker {
namespace {

using Writer = Source::Writer;

std::optional<std::string> ValueIn(const Fields& fields,
                                   const std::string& field) {
  const auto found = fields.find(field);
  return found == fields.end() ? DefaultOf(field)
                               : std::optional<std::string>(found->second);
}

// The fields that the file says something about, now or as last applied.
std::set<std::string> NamesOf(const Subject& subject, const Fields& file) {
  std::set<std::string> names;
  for (const auto& [field, value] : file) names.insert(field);
  for (const auto& [field, writes] : subject.fields) {
    if (ByFile(subject, field) != nullptr) names.insert(field);
  }
  return names;
}

bool WroteAny(const Subject& subject) {
  for (const auto& [field, writes] : subject.fields) {
    if (ByFile(subject, field) != nullptr) return true;
  }
  return false;
}

class Merger {
 public:
  Merger(Declared* next, absl::Time at)
      : next_(next), at_(at), beneath_(!next->file_applied) {}

  void Put(const Fields& file, Subject* subject) {
    const bool known = WroteAny(*subject);
    for (const std::string& field : NamesOf(*subject, file)) {
      const Written* const before = ByFile(*subject, field);
      std::optional<std::string> last;
      if (before != nullptr) {
        last = before->value;
      } else if (known) {
        last = DefaultOf(field);
      }
      const std::optional<std::string> now = ValueIn(file, field);
      if (beneath_) {
        PutBeneath(field, now, subject);
      } else if (last != now) {
        PutOver(field, now, subject);
      }
    }
    subject->in_file = true;
  }

 private:
  void PutOver(const std::string& field, const std::optional<std::string>& now,
               Subject* subject) {
    subject->fields.erase(field);
    if (!now.has_value()) return;
    PutWritten(field, {.value = *now, .at = at_, .order = next_->next_order++},
               subject);
  }

  void PutBeneath(const std::string& field,
                  const std::optional<std::string>& now, Subject* subject) {
    if (!now.has_value()) return;
    if (const auto found = subject->fields.find(field);
        found != subject->fields.end()) {
      std::erase_if(found->second, [&](const Written& written) {
        return written.value == *now;
      });
    }
    PutWritten(field, {.value = *now, .at = at_, .order = 0}, subject);
  }

  Declared* const next_;
  const absl::Time at_;
  const bool beneath_;
};

// The file does not name it any more, and somebody else made it: that one has
// the values now.
void HandOver(Subject* subject) {
  std::map<std::string, std::vector<Written>> rest;
  for (const auto& [field, writes] : subject->fields) {
    const Written* const last = InForce(*subject, field);
    for (const Written& written : writes) {
      if (written.source.writer != Writer::kFile)
        rest[field].push_back(written);
    }
    if (last == nullptr || last->source.writer != Writer::kFile) continue;
    rest.erase(field);
    Written handed = *last;
    handed.source = subject->maker;
    rest[field].push_back(std::move(handed));
  }
  subject->fields = std::move(rest);
}

// A value that `writer` takes away with the field: its own, and operators'.
bool IsTakenBy(const Source& writer, const Written& written) {
  return written.source.writer == Writer::kOperator ||
         written.source.writer == Writer::kOverride ||
         (writer.writer == Writer::kApply && written.source == writer);
}

// Of a device: the value that it has without a word of its own.
bool IsAsEverywhere(const std::string& field, const std::string& value,
                    const Fields& fields) {
  if (!absl::StartsWith(field, "devices/")) return false;
  const auto general = fields.find(field.substr(field.rfind('/') + 1));
  return general != fields.end() && general->second == value;
}

// Returns whether the file made it and it is still there.
bool TakeOut(const std::string& name, Declared* next) {
  Subject& subject = next->tenants[name];
  if (subject.deleted) {
    next->tenants.erase(name);
    return false;
  }
  const bool was_in_file = std::exchange(subject.in_file, false);
  if (subject.maker.writer == Writer::kFile) return true;
  if (was_in_file) HandOver(&subject);
  return false;
}

void MergePools(const FileState& file, Merger* merger, Declared* next) {
  for (const auto& [device, fields] : file.pools)
    merger->Put(fields, &next->pools[device]);
}

}  // namespace

FileMerge MergeFile(const Declared& now, const FileState& file, absl::Time at) {
  FileMerge merge{.next = now, .leaving = {}};
  Merger merger(&merge.next, at);
  for (const auto& [name, fields] : file.tenants) {
    Subject& subject = merge.next.tenants[name];
    // It was out of the file meanwhile, so its deletion was of another one.
    if (subject.deleted && !subject.in_file && now.file_applied)
      subject = Subject();
    merger.Put(fields, &subject);
  }
  for (const auto& [name, subject] : now.tenants) {
    if (!file.tenants.contains(name) && TakeOut(name, &merge.next))
      merge.leaving.push_back(name);
  }
  MergePools(file, &merger, &merge.next);
  merge.next.file_applied = true;
  return merge;
}

void WriteFields(const std::string& name, const Fields& fields,
                 const Source& source, absl::Time at, Declared* declared,
                 const std::set<std::string>& named) {
  const auto [it, is_new] = declared->tenants.try_emplace(name);
  Subject& subject = it->second;
  if (is_new || subject.deleted) subject.maker = source;
  subject.deleted = false;
  for (auto field = subject.fields.begin(); field != subject.fields.end();) {
    if (!fields.contains(field->first)) {
      std::erase_if(field->second, [&](const Written& written) {
        return IsTakenBy(source, written);
      });
    }
    field =
        field->second.empty() ? subject.fields.erase(field) : std::next(field);
  }
  for (const auto& [field, value] : fields) {
    const Written* const last = InForce(subject, field);
    if (last == nullptr && !named.contains(field) &&
        IsAsEverywhere(field, value, fields))
      continue;
    if (last != nullptr && last->value == value &&
        (!last->until.has_value() || !named.contains(field)))
      continue;
    PutWritten(field,
               {.value = value,
                .source = source,
                .at = at,
                .order = declared->next_order++},
               &subject);
  }
}

void WritePool(const std::string& device, const std::string& size,
               const Source& source, absl::Time at, Declared* declared) {
  Subject& subject = declared->pools[device];
  const Written* const last = InForce(subject, kPoolSize);
  if (last != nullptr && last->value == size &&
      last->source.writer == source.writer)
    return;
  PutWritten(kPoolSize,
             {.value = size,
              .source = source,
              .at = at,
              .order = declared->next_order++},
             &subject);
}

void Delete(const std::string& name, Declared* declared) {
  Subject& subject = declared->tenants[name];
  subject.deleted = true;
  for (auto field = subject.fields.begin(); field != subject.fields.end();) {
    std::erase_if(field->second, [](const Written& written) {
      return written.source.writer != Writer::kFile;
    });
    field =
        field->second.empty() ? subject.fields.erase(field) : std::next(field);
  }
}

bool Withdraw(const std::string& name, const Source& apply,
              Declared* declared) {
  Subject& subject = declared->tenants[name];
  if (subject.maker == apply && !subject.in_file) return true;
  if (subject.maker == apply) subject.maker = Source();  // the file's now
  for (auto field = subject.fields.begin(); field != subject.fields.end();) {
    std::erase_if(field->second, [&](const Written& written) {
      return written.source == apply;
    });
    field =
        field->second.empty() ? subject.fields.erase(field) : std::next(field);
  }
  return false;
}

void Forget(const std::string& name, Declared* declared) {
  declared->tenants.erase(name);
}

}  // namespace gmb::broker
