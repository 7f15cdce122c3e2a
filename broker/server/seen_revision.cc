// Refuses the change of an operator who looked before somebody else's change.
#include "broker/server/seen_revision.h"

#include "absl/strings/str_cat.h"
#include "proto/error_status.h"

namespace gmb::broker {

absl::Status CheckRevision(const Declared& declared, uint64_t expected) {
  const uint64_t now = declared.next_order;
  if (expected == 0 || expected == now) return absl::OkStatus();
  return proto::MakeError(
      v1::BAD_STATE,
      absl::StrCat("something was changed since you looked: look again, and "
                   "name the revision that you then see: revision=",
                   now, " expected=", expected),
      {.field = "if_revision"});
}

}  // namespace gmb::broker
