#ifndef GMB_BROKER_CONFIG_CONFIG_FILE_H_
#define GMB_BROKER_CONFIG_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"

namespace gmb::broker {

// Reads a configuration file's text into `config`, which keeps its values where
// the text says nothing. INVALID_ARGUMENT: all that is wrong with it, one line
// each: "gmbd.yaml:12:5: tenants[1].guarantee: ...". Never throws, for any
// text. Opens the token files that the text names, relative to the directory of
// `path`, and asks the system for the users it names.
[[nodiscard]] absl::Status ParseConfigFile(const std::string& text,
                                           const std::string& path,
                                           BrokerConfig* config);

// Tenants as an operator names them (`gmb apply`): `tenants` alone, as in a
// configuration file, without what is that file's: token files and sockets. No file
// is opened. `name` is said in errors in the place of a path.
[[nodiscard]] absl::Status ParseTenants(const std::string& text,
                                        const std::string& name,
                                        BrokerConfig* config);

// The same as ParseConfigFile for a file on disk, of at most 4 MiB.
[[nodiscard]] absl::Status ReadConfigFile(const std::string& path,
                                          BrokerConfig* config);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_CONFIG_FILE_H_
