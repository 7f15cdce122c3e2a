#ifndef GMB_BROKER_TENANT_NAME_H_
#define GMB_BROKER_TENANT_NAME_H_

#include <algorithm>

#include "absl/strings/string_view.h"

namespace gmb::broker {

inline constexpr char kTenantNameRule[] =
    "a tenant's name is 1 to 63 of a-z, 0-9, '-', '_' and '.', and starts with "
    "a letter or digit";

// Names are also directory names and labels of metrics.
[[nodiscard]] inline bool IsValidTenantName(absl::string_view name) {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > 63 || !is_alnum(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return is_alnum(c) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_TENANT_NAME_H_
