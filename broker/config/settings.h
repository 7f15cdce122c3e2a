#ifndef GMB_BROKER_CONFIG_SETTINGS_H_
#define GMB_BROKER_CONFIG_SETTINGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "broker/config/broker_config.h"

namespace gmb::broker {

// A setting with one value: a key of the file ("max_handles") and a flag
// ("--max-handles"), so that both mean and accept the same. A switch of the
// file has a second flag, "--no-pause", that turns it off.
struct Setting {
  const char* name;
  const char* placeholder;  // the value's name in --help; null: a switch
  const char* default_text;
  const char* help;
  bool flag_only;
  // INVALID_ARGUMENT says what is accepted. A switch is given "true" or
  // "false".
  absl::Status (*apply)(absl::string_view text, BrokerConfig* config);

  [[nodiscard]] std::string Flag() const;  // "--max-handles"
};

[[nodiscard]] absl::Span<const Setting> Settings();

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_SETTINGS_H_
