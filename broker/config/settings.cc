// The broker's start: the settings that file and flags have in common.
#include "broker/config/settings.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "broker/config/values.h"
#include "broker/http/address.h"
#include "broker/tenant_name.h"
#include "proto/tenant_bounds.h"

namespace gmb::broker {
namespace {

// Puts a parsed value where it belongs, or passes its refusal on.
template <typename T, typename Field>
absl::Status Put(absl::StatusOr<T> value, Field* field) {
  if (!value.ok()) return value.status();
  *field = *std::move(value);
  return absl::OkStatus();
}

absl::Status PutPath(absl::string_view text, std::string* path) {
  if (text.empty() || text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("write the path of a directory");
  }
  // A shell would make it a home directory, and in a file there is none.
  if (text.front() == '~') {
    return absl::InvalidArgumentError(absl::StrCat(
        "write the path in full: ~ is not expanded here; got ", Shown(text)));
  }
  *path = std::string(text);
  while (path->size() > 1 && path->back() == '/') path->pop_back();
  return absl::OkStatus();
}

absl::Status PutKeeper(absl::string_view text, BrokerConfig* config) {
  config->keeper_socket.clear();
  if (text == "none") return absl::OkStatus();
  if (text.empty() || text.front() != '/' ||
      text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "write the path of gmb-keeper's socket in full, from / on, or none; "
        "got ",
        Shown(text)));
  }
  config->keeper_socket = std::string(text);
  return absl::OkStatus();
}

absl::Status PutOnStop(absl::string_view text, BrokerConfig* config) {
  if (text != "drain" && text != "detach") {
    return absl::InvalidArgumentError(
        absl::StrCat("write drain or detach; got ", Shown(text)));
  }
  config->detach_on_stop = text == "detach";
  return absl::OkStatus();
}

absl::Status PutHttp(absl::string_view text, BrokerConfig* config) {
  config->http.reset();
  if (text == "off") return absl::OkStatus();
  return Put(ParseHttpAddress(text), &config->http);
}

absl::Status PutHttpTokenFile(absl::string_view text, BrokerConfig* config) {
  if (text.empty() || text.front() != '/' ||
      text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "write the path of the file in full, from / on; got ", Shown(text)));
  }
  config->http_token_file = std::string(text);
  return absl::OkStatus();
}

absl::Status PutDefaultTenant(absl::string_view text, BrokerConfig* config) {
  if (!IsValidTenantName(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTenantNameRule, "; got ", Shown(text)));
  }
  config->default_tenant = std::string(text);
  return absl::OkStatus();
}

absl::Status PutLogFormat(absl::string_view text, BrokerConfig* config) {
  if (text != "text" && text != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("write text or json; got ", Shown(text)));
  }
  config->log.format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

absl::Status PutLogLevel(absl::string_view text, BrokerConfig* config) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo,
                               LogLevel::kWarning, LogLevel::kError}) {
    if (text != LogLevelName(level)) continue;
    config->log.level = level;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("write debug, info, warning or error; got ", Shown(text)));
}

// In whole pages: a pool of another size would not be the one that was asked
// for.
absl::Status PutHostPool(absl::string_view text, BrokerConfig* config) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kPage = 2 * kMiB;
  GMB_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(text));
  if (bytes % kPage != 0) {
    const uint64_t below = bytes / kPage * (kPage / kMiB);
    const std::string near =
        below == 0
            ? "2MiB, or 0 for none"
            : absl::StrCat(below, "MiB or ", below + kPage / kMiB, "MiB");
    return absl::InvalidArgumentError(
        absl::StrCat("the size of the host pool is a multiple of 2MiB: write ",
                     near, "; got ", Shown(text)));
  }
  config->host_pool_bytes = bytes;
  return absl::OkStatus();
}

using Text = absl::string_view;
using Config = BrokerConfig;

constexpr Setting kSettings[] = {
    {"pool", "AMOUNT", "100%",
     "how much of each GPU the broker owns: bytes, or a share of what is free "
     "at the start less the headroom",
     false,
     [](Text t, Config* c) { return Put(ParseQuotaAmount(t), &c->pool); }},
    {"headroom", "SIZE", "6GiB",
     "memory of each GPU left outside the pool, for CUDA contexts (0.5 GiB a "
     "process)",
     false,
     [](Text t, Config* c) { return Put(ParseSize(t), &c->headroom_bytes); }},
    {"float", "SIZE", "1/64 to 1/32 of the pool, at most 1GiB",
     "the part of each pool kept unallocated, from which odd sizes are created "
     "quickly",
     false,
     [](Text t, Config* c) { return Put(ParseSize(t), &c->float_bytes); }},
    {"host_pool", "SIZE",
     "a quarter of the memory available, at most the pools, taken as needed",
     "host memory for the contents of evicted leases, a multiple of 2MiB, set "
     "aside at the start; 0: none, and what is to be kept stays on the device",
     false, PutHostPool},
    {"pause", nullptr, "on",
     "let no new scope into sessions above their guarantee when a tenant lacks "
     "bytes within its own",
     false, [](Text t, Config* c) { return Put(ParseTruth(t), &c->pause); }},
    {"lend_parked_guarantees", nullptr, "off",
     "let requests above a guarantee have parked memory within another's",
     false,
     [](Text t, Config* c) {
       return Put(ParseTruth(t), &c->lend_parked_guarantees);
     }},
    {"back_ahead", "SIZE", "0",
     "bytes a second of parked memory copied to the host pool ahead of need, "
     "while nobody waits; 0: none",
     false,
     [](Text t, Config* c) {
       return Put(ParseSize(t), &c->back_ahead_bytes_per_second);
     }},
    {"back_sealed", "SIZE", "4GiB",
     "likewise of sealed memory, once, where somebody has lacked memory within "
     "ten minutes; 0: none",
     false,
     [](Text t, Config* c) {
       return Put(ParseSize(t), &c->back_sealed_bytes_per_second);
     }},
    {"unmap_grace", "TIME", "2s",
     "how long a client has for unmapping what is taken from it, beside the "
     "copying (0s to 1h)",
     false,
     [](Text t, Config* c) {
       return Put(ParseTime(t, absl::Hours(1)), &c->unmap_grace);
     }},
    {"kill_grace", "TIME", "5s",
     "how long a client that did not do so in time has until it is killed, "
     "where its tenant's may_terminate allows that (0s to 1h)",
     false,
     [](Text t, Config* c) {
       return Put(ParseTime(t, absl::Hours(1)), &c->kill_grace);
     }},
    {"allow_ipc", nullptr, "off",
     "allow ipc: devices (legacy CUDA IPC), for trusted processes of one user "
     "only",
     false,
     [](Text t, Config* c) { return Put(ParseTruth(t), &c->allow_ipc); }},
    {"socket_dir", "DIR", "/run/gmb", "where the broker's sockets are", false,
     [](Text t, Config* c) { return PutPath(t, &c->socket_dir); }},
    {"state_dir", "DIR", "/var/lib/gmb",
     "where operators' quotas and the audit log are kept", false,
     [](Text t, Config* c) { return PutPath(t, &c->state_dir); }},
    {"fresh_state", nullptr, "off",
     "when the state database is damaged, or missing beside a keeper that has "
     "sessions: keep it aside and start with the quotas of the file alone",
     true,
     [](Text t, Config* c) { return Put(ParseTruth(t), &c->fresh_state); }},
    {"keeper", "PATH", "none",
     "socket of the gmb-keeper that has leases and contents when the broker "
     "dies, for the next one; none: they end with it",
     false, PutKeeper},
    {"on_stop", "WHAT", "drain",
     "what SIGTERM does: drain, or (with a keeper) detach: exit at once, and "
     "leave all to the next broker",
     false, PutOnStop},
    {"admin_group", "GROUP", "none",
     "group whose members are operators, beside the broker's own user", false,
     [](Text t, Config* c) { return Put(ParseGroup(t), &c->admin_group); }},
    {"default_tenant", "NAME", "none",
     "tenant of a peer on the shared socket that no token and no uid assigns; "
     "none: it is refused",
     false, PutDefaultTenant},
    {"http", "ADDRESS", "off",
     "where /metrics and /healthz are served: 127.0.0.1:9469, "
     "unix:/run/gmb/http.sock, or an address of others, with http_token_file",
     false, PutHttp},
    {"http_token_file", "FILE", "none",
     "a file with the token (16 to 256 bytes) that /metrics asks for: "
     "Authorization: Bearer TOKEN",
     false, PutHttpTokenFile},
    {"max_handles", "N", "32768",
     "slabs in leases at once, of all tenants (1 to 1000000)", false,
     [](Text t, Config* c) {
       return Put(ParseNumber(t, 1, proto::kMostHandles), &c->max_handles);
     }},
    {"max_sessions", "N", "1024", "client processes at once (1 to 100000)",
     false,
     [](Text t, Config* c) {
       return Put(ParseNumber(t, 1, proto::kMostSessions), &c->max_sessions);
     }},
    {"reuse_for", "TIME", "5s",
     "how long returned memory waits for the same tenant (0s to 1h)", false,
     [](Text t, Config* c) {
       return Put(ParseTime(t, absl::Hours(1)), &c->reuse_for);
     }},
    {"drain_deadline", "TIME", "30s",
     "how long SIGTERM waits for sessions to end (0s to 1h)", false,
     [](Text t, Config* c) {
       return Put(ParseTime(t, absl::Hours(1)), &c->drain_deadline);
     }},
    {"reload_may_reclaim", "SIZE", "0",
     "bytes that a reload of the file (SIGHUP) may take from processes, in "
     "all; "
     "what would take more waits",
     false,
     [](Text t, Config* c) {
       return Put(ParseSize(t), &c->reload_may_reclaim_bytes);
     }},
    {"watch_config", nullptr, "off",
     "read the file again by itself when it, or a token file in it, is "
     "replaced",
     false,
     [](Text t, Config* c) { return Put(ParseTruth(t), &c->watch_config); }},
    {"log_format", "FORMAT", "text",
     "text or json; one line an event, to standard error", false, PutLogFormat},
    {"log_level", "LEVEL", "info", "debug, info, warning or error", false,
     PutLogLevel},
};

}  // namespace

std::string Setting::Flag() const {
  return absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}));
}

absl::Span<const Setting> Settings() { return kSettings; }

}  // namespace gmb::broker
