#ifndef GMB_BROKER_DECLARED_FIELDS_H_
#define GMB_BROKER_DECLARED_FIELDS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "broker/machine/tenant.h"
#include "quota/amount.h"

namespace gmb::broker {

// A tenant's policy as text, field by field: "guarantee" is "25%", and
// "devices/GPU-1/limit" the limit on one device. Equal values have equal
// texts, and no value is changed by being written and read. The token is left
// out: it is secret.
using Fields = std::map<std::string, std::string>;

[[nodiscard]] Fields FieldsOf(const TenantPolicy& policy);
// A field that is left out, unknown or unreadable has its default; on a device,
// the value of every device.
[[nodiscard]] TenantPolicy PolicyOf(const std::string& name,
                                    const Fields& fields);
// The value of a field that nobody wrote. None: on a device, or unknown.
[[nodiscard]] std::optional<std::string> DefaultOf(const std::string& field);

// "25%", "1073741824".
[[nodiscard]] std::string WriteAmount(const quota::Amount& amount);
[[nodiscard]] std::optional<quota::Amount> ReadAmount(absl::string_view text);

// As the configuration file would say it, without loss: "30s", "64MiB", "25%".
[[nodiscard]] std::string InWords(absl::string_view field,
                                  const std::string& value);

// The field of a pool.
inline constexpr char kPoolSize[] = "size";

}  // namespace gmb::broker

#endif  // GMB_BROKER_DECLARED_FIELDS_H_
