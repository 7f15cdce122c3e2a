// The broker's start: where it is to answer HTTP.
#include "broker/http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "ipc/socket_path.h"

namespace gmb::broker {
namespace {

absl::Status NotAnAddress(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "write 127.0.0.1:9469, another numeric address with its port "
      "([::1]:9469), unix:/run/gmb/http.sock, or off; got \"",
      absl::CHexEscape(text.substr(0, 80)), "\""));
}

bool IsIp4(const std::string& ip) {
  in_addr address{};
  return ::inet_pton(AF_INET, ip.c_str(), &address) == 1;
}

bool IsIp6(const std::string& ip) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, ip.c_str(), &address) == 1;
}

absl::StatusOr<HttpAddress> ParseUnix(absl::string_view path) {
  HttpAddress address{.unix_path = std::string(path), .ip = "", .port = 0};
  if (path.empty() || path.front() != '/' ||
      path.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "write the path of the socket in full: unix:/run/gmb/http.sock");
  }
  GMB_RETURN_IF_ERROR(ipc::CheckSocketPath(address.unix_path));
  return address;
}

}  // namespace

bool IsLoopbackIp(const std::string& ip) {
  in_addr four{};
  if (::inet_pton(AF_INET, ip.c_str(), &four) == 1)
    return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, ip.c_str(), &six) != 1) return false;
  // A mapped IPv4 address is none of them: it would be the other machine's.
  return IN6_IS_ADDR_LOOPBACK(&six);
}

bool HttpAddress::IsLocal() const {
  return !unix_path.empty() || IsLoopbackIp(ip);
}

std::string HttpAddress::Text() const {
  if (!unix_path.empty()) return absl::StrCat("unix:", unix_path);
  return IsIp6(ip) ? absl::StrCat("[", ip, "]:", port)
                   : absl::StrCat(ip, ":", port);
}

absl::StatusOr<HttpAddress> ParseHttpAddress(absl::string_view text) {
  if (absl::StartsWith(text, "unix:")) return ParseUnix(text.substr(5));
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return NotAnAddress(text);
  const absl::string_view number = text.substr(colon + 1);
  uint32_t port = 0;
  // SimpleAtoi takes signs and spaces.
  if (number.empty() || number.size() > 5 ||
      number.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(number, &port) || port > 65535) {
    return NotAnAddress(text);
  }
  absl::string_view host = text.substr(0, colon);
  const bool bracketed =
      absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  HttpAddress address{.unix_path = "",
                      .ip = std::string(host),
                      .port = static_cast<uint16_t>(port)};
  const bool valid = host.find('\0') == absl::string_view::npos &&
                     (bracketed ? IsIp6(address.ip) : IsIp4(address.ip));
  if (!valid) return NotAnAddress(text);
  return address;
}

}  // namespace gmb::broker
