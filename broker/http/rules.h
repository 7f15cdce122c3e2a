#ifndef GMB_BROKER_HTTP_RULES_H_
#define GMB_BROKER_HTTP_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmb::broker {

// Which requests are answered. Pure: nothing here knows a socket.

// The contents of one request, as far as they matter. All of them are a
// stranger's.
struct HttpRequest {
  std::string method;
  std::string path;                        // without a query
  std::vector<std::string> host;           // of each Host header
  std::vector<std::string> authorization;  // of each Authorization header
};

struct HttpPolicy {
  // The token that "Authorization: Bearer ..." has to carry; empty: none is
  // asked for, which is for addresses of this machine alone. Secret.
  std::string bearer;
  // Whether a browser could be led here by a name that its owner points at
  // 127.0.0.1: over TCP, and without a token that a foreign page cannot send.
  bool check_host = true;
};

enum class HttpPage { kNone, kMetrics, kHealth };

struct HttpVerdict {
  int status = 0;  // 200, or the refusal's
  HttpPage page = HttpPage::kNone;
  std::string explanation;  // of a refusal: a line for people
};

// The first rule that is broken decides: one Host header (400), which names
// this machine (421), a page that is there (404), GET or HEAD (405), the token
// (401). Health is told without one.
[[nodiscard]] HttpVerdict Judge(const HttpRequest& request,
                                const HttpPolicy& policy);

// "localhost", or a numeric address of the loopback network, with any port:
// forwarded ports differ.
[[nodiscard]] bool IsLocalHost(absl::string_view host);

}  // namespace gmb::broker

#endif  // GMB_BROKER_HTTP_RULES_H_
