// The file wants to take more from processes than it may: that part of it waits.
#include "broker/declared/pending.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

constexpr char kLimit[] = "limit";

std::optional<Written> Copy(const Written* written) {
  return written == nullptr ? std::nullopt : std::optional(*written);
}

Subject Find(const Declared& declared, const std::string& tenant) {
  const auto found = declared.tenants.find(tenant);
  return found == declared.tenants.end() ? Subject() : found->second;
}

// The last write of the field since the file was read. Null: there is none. A
// value that was there before can be the last again, and is no later for that.
const Written* LaterWrite(const PendingField& pending, const Subject& subject) {
  const Written* const now = InForce(subject, pending.field);
  if (now == nullptr || now->source.writer == Source::Writer::kFile)
    return nullptr;
  const bool is_later =
      !pending.in_force.has_value() || now->order > pending.in_force->order;
  return is_later ? now : nullptr;
}

// As it was; nothing, if there was nothing.
void Restore(const std::string& field, const Subject& before, Subject* next) {
  const auto was = before.fields.find(field);
  if (was == before.fields.end()) {
    next->fields.erase(field);
  } else {
    next->fields[field] = was->second;
  }
}

}  // namespace

PendingField KeepLimit(const std::string& tenant, const std::string& device,
                       const Declared& before, const Declared& merged,
                       absl::Time at, Declared* next) {
  const Subject was = Find(before, tenant);
  const Subject wanted = Find(merged, tenant);
  Subject* const is = &next->tenants[tenant];
  const std::string own = absl::StrCat("devices/", device, "/", kLimit);
  const bool had_own = InForce(was, own) != nullptr;
  const Written* const gets_own = InForce(wanted, own);
  PendingField pending;
  pending.tenant = tenant;
  pending.device = device;
  pending.at = at;
  pending.field = had_own || gets_own != nullptr ? own : kLimit;
  if (const Written* const now = InForce(wanted, pending.field))
    pending.wanted = now->value;
  if (had_own || gets_own == nullptr) {
    Restore(pending.field, was, is);
  } else {
    // It had the limit of every device there, which others keep changing.
    const Written* const general = InForce(was, kLimit);
    Written kept = *gets_own;
    kept.value = general == nullptr ? *DefaultOf(kLimit) : general->value;
    is->fields.erase(own);
    PutWritten(own, std::move(kept), is);
  }
  pending.in_force = Copy(InForce(*is, pending.field));
  return pending;
}

bool YieldToLaterWrites(const PendingField& pending, Declared* declared) {
  const auto found = declared->tenants.find(pending.tenant);
  if (found == declared->tenants.end()) return false;
  Subject& subject = found->second;
  const Written* const later = LaterWrite(pending, subject);
  if (later == nullptr || later->until.has_value()) return false;
  std::vector<Written>& writes = subject.fields[pending.field];
  std::erase_if(writes, [](const Written& written) {
    return written.source.writer == Source::Writer::kFile;
  });
  if (pending.wanted.has_value()) {
    PutWritten(pending.field,
               {.value = *pending.wanted, .at = pending.at, .order = 0},
               &subject);
  } else if (writes.empty()) {
    subject.fields.erase(pending.field);
  }
  return true;
}

bool WaitForItsEnd(const PendingField& pending, const Declared& declared,
                   FileState* file) {
  const auto fields = file->tenants.find(pending.tenant);
  if (fields == file->tenants.end()) return false;
  const Subject subject = Find(declared, pending.tenant);
  const Written* const later = LaterWrite(pending, subject);
  if (later == nullptr || !later->until.has_value()) return false;
  const auto now = fields->second.find(pending.field);
  if (pending.wanted != (now == fields->second.end()
                             ? DefaultOf(pending.field)
                             : std::optional(now->second)))
    return false;
  const Written* const applied = ByFile(subject, pending.field);
  if (applied != nullptr) {
    fields->second[pending.field] = applied->value;
  } else {
    fields->second.erase(pending.field);
  }
  return true;
}

}  // namespace gmb::broker
