#ifndef GMB_BROKER_HTTP_ADDRESS_H_
#define GMB_BROKER_HTTP_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::broker {

// Where the broker answers HTTP: "127.0.0.1:9469", "[::1]:9469" or
// "unix:/run/gmb/http.sock".
struct HttpAddress {
  std::string unix_path;  // empty: TCP
  std::string ip;         // numeric, without brackets
  uint16_t port = 0;      // 0: one that the system picks, which the log names

  // Whether processes of this machine alone can connect.
  [[nodiscard]] bool IsLocal() const;
  [[nodiscard]] std::string Text() const;  // as it is written

  friend bool operator==(const HttpAddress&, const HttpAddress&) = default;
};

// INVALID_ARGUMENT says what is accepted. Names of hosts are not: what they
// stand for can change between the check and the listening.
[[nodiscard]] absl::StatusOr<HttpAddress> ParseHttpAddress(
    absl::string_view text);

// Whether the text is a numeric address, IPv4 or IPv6, of the loopback
// network. Brackets around it are part of no address.
[[nodiscard]] bool IsLoopbackIp(const std::string& ip);

}  // namespace gmb::broker

#endif  // GMB_BROKER_HTTP_ADDRESS_H_
