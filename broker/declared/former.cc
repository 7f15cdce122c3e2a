// At each change of a tenant the values that it had before are kept with it, so
// that the change can be undone.
#include "broker/declared/former.h"

#include <string>
#include <utility>

namespace gmb::broker {
namespace {

// All fields, so that what is left to its default differs from nothing said.
Fields Values(const std::string& name, const Subject& subject) {
  return FieldsOf(PolicyOf(name, InForce(subject)));
}

}  // namespace

void NoteFormer(const Declared& before, Declared* after) {
  for (auto& [name, subject] : after->tenants) {
    const auto was = before.tenants.find(name);
    if (was == before.tenants.end() || was->second.deleted || subject.deleted) {
      subject.former.clear();
    } else if (was->second != subject) {
      Fields values = Values(name, was->second);
      if (values != Values(name, subject)) subject.former = std::move(values);
    }
  }
}

}  // namespace gmb::broker
