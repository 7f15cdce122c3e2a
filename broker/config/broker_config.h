#ifndef GMB_BROKER_CONFIG_BROKER_CONFIG_H_
#define GMB_BROKER_CONFIG_BROKER_CONFIG_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/http/address.h"
#include "broker/log/logging.h"
#include "broker/machine/tenant.h"
#include "broker/socket_access.h"
#include "device/handle.h"
#include "quota/amount.h"

namespace gmb::broker {

// One device that the broker owns. A value that is not set here is
// BrokerConfig's.
struct DeviceConfig {
  device::DeviceKind kind = device::DeviceKind::kHost;
  // "cuda:0" or "GPU-<uuid>"; "host-0", "host-1", ... in their order for host.
  std::string name;
  uint64_t host_bytes = 0;  // of a host device: its pool
  std::optional<quota::Amount> pool;
  std::optional<uint64_t> headroom_bytes;
  std::optional<uint64_t> float_bytes;

  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

struct TenantConfig {
  // Its device_quotas are keyed by DeviceConfig::name or by UUID.
  TenantPolicy policy;
  SocketAccess socket;
  std::string token_file;  // from which its token is; empty: none
  int line = 0;            // of the file, where it begins, from 1

  // Wherever it is.
  friend bool operator==(const TenantConfig& a, const TenantConfig& b) {
    return a.policy == b.policy && a.socket == b.socket &&
           a.token_file == b.token_file;
  }
};

// All that a broker is told at its start, checked as far as that goes without
// opening a device. docs/configuration.md says what the fields mean.
struct BrokerConfig {
  std::vector<DeviceConfig> devices;  // at least one
  // Of each GPU: a share is of its free memory at the start less the headroom.
  // Neither says anything about host devices, whose pools are their sizes.
  quota::Amount pool = quota::Amount::Fraction(1);
  uint64_t headroom_bytes = uint64_t{6} << 30;
  std::optional<uint64_t> float_bytes;  // none: fits the pool's size
  bool allow_ipc = false;

  std::string socket_dir = "/run/gmb";
  std::string state_dir = "/var/lib/gmb";
  std::optional<gid_t> admin_group;
  bool fresh_state = false;
  // gmb-keeper's; empty: all ends with the broker.
  std::string keeper_socket;
  bool detach_on_stop = false;  // with a keeper

  std::string default_tenant;  // empty: strangers are refused
  std::vector<TenantConfig> tenants;
  uint32_t max_handles = 32768;
  uint32_t max_sessions = 1024;

  // Host memory for the contents of evicted leases; 0: none, and leases with
  // contents to be kept are not evicted. Not set: a share of what the machine
  // has (broker/daemon/host_pool_setup.h).
  std::optional<uint64_t> host_pool_bytes;
  // Steps that reclaim may take beside trimming and evicting, and from whom
  // (docs/reclaim-study.md).
  bool pause = true;
  bool lend_parked_guarantees = false;
  uint64_t back_ahead_bytes_per_second = 0;
  uint64_t back_sealed_bytes_per_second = uint64_t{4} << 30;
  // How long a client has for its answer to an Evict, and after that until it
  // is killed where that is allowed.
  absl::Duration unmap_grace = absl::Seconds(2);
  absl::Duration kill_grace = absl::Seconds(5);

  // Where metrics are served; none: nowhere. Beyond this machine a token is
  // asked for.
  std::optional<HttpAddress> http;
  std::string http_token_file;  // empty: none
  std::string http_token;       // what is in it; secret: never logged

  absl::Duration reuse_for = absl::Seconds(5);
  absl::Duration drain_deadline = absl::Seconds(30);
  // Whether the file is read again when it, or a token file, is another one.
  bool watch_config = false;
  // So much a reload of the file may take from processes, in all.
  uint64_t reload_may_reclaim_bytes = 0;
  LogOptions log;

  // The names of the settings that the file gives, "devices" among them.
  std::set<std::string> in_file;
  // The settings that file or flags give, by name, as they were written.
  std::map<std::string, std::string> given;
  std::vector<std::string> warnings;  // to be logged

  friend bool operator==(const BrokerConfig&, const BrokerConfig&) = default;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_BROKER_CONFIG_H_
