// HTTP: which requests are answered.
#include "broker/http/rules.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "broker/http/address.h"
#include "ipc/random.h"

namespace gmb::broker {
namespace {

HttpVerdict Refuse(int status, std::string explanation) {
  return {.status = status,
          .page = HttpPage::kNone,
          .explanation = std::move(explanation)};
}

HttpPage PageAt(absl::string_view path) {
  if (path == "/metrics") return HttpPage::kMetrics;
  if (path == "/healthz") return HttpPage::kHealth;
  return HttpPage::kNone;
}

bool HasBearer(const HttpRequest& request, const std::string& bearer) {
  if (request.authorization.size() != 1) return false;
  absl::string_view given = request.authorization.front();
  // The scheme's case does not matter (RFC 7235).
  if (!absl::StartsWithIgnoreCase(given, "bearer ")) return false;
  given = absl::StripLeadingAsciiWhitespace(given.substr(7));
  return ipc::ConstantTimeEquals(given, bearer);
}

}  // namespace

bool IsLocalHost(absl::string_view host) {
  if (absl::StartsWith(host, "[")) {
    const size_t end = host.find(']');
    if (end == absl::string_view::npos) return false;
    const absl::string_view rest = host.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return false;
    return IsLoopbackIp(std::string(host.substr(1, end - 1)));
  }
  host = host.substr(0, host.find(':'));
  return absl::EqualsIgnoreCase(host, "localhost") ||
         IsLoopbackIp(std::string(host));
}

HttpVerdict Judge(const HttpRequest& request, const HttpPolicy& policy) {
  if (request.host.size() != 1) return Refuse(400, "send one Host header\n");
  if (policy.check_host && !IsLocalHost(request.host.front())) {
    return Refuse(421,
                  "this address is for programs of this machine: ask for "
                  "localhost or 127.0.0.1\n");
  }
  const HttpPage page = PageAt(request.path);
  if (page == HttpPage::kNone)
    return Refuse(404, "there are /metrics and /healthz\n");
  if (request.method != "GET" && request.method != "HEAD")
    return Refuse(405, "send GET or HEAD\n");
  if (page != HttpPage::kHealth && !policy.bearer.empty() &&
      !HasBearer(request, policy.bearer)) {
    return Refuse(401, "send the token: Authorization: Bearer TOKEN\n");
  }
  return {.status = 200, .page = page, .explanation = ""};
}

}  // namespace gmb::broker
