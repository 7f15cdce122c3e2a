#ifndef GMB_BROKER_MACHINE_PEER_H_
#define GMB_BROKER_MACHINE_PEER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "broker/machine/origin.h"
#include "device/handle.h"
#include "quota/units.h"

namespace gmb::broker {

// A peer whose credentials the handle server has proved.
struct PeerIdentity {
  Origin origin = Origin::kShared;
  std::string tenant_directory;  // with kTenantDirectory
  pid_t pid = 0;                 // 0: in a pid namespace the broker cannot see
  uid_t uid = 0;
  gid_t gid = 0;
  // Of the person, whatever they became since (sudo); none: nobody logged in.
  std::optional<uid_t> login_uid = std::nullopt;
  std::string program;       // as the peer calls itself; printable, at most 64
  std::string tenant_token;  // as the peer sent it; secret
  // By which it can be killed; null where the kernel has none for it.
  std::shared_ptr<const base::UniqueFd> pidfd;
};

// The machine's answer to a peer whose session it has opened.
struct Welcome {
  uint64_t session = 0;
  std::string tenant;  // empty for an operator
  std::vector<device::DeviceInfo> devices;
  std::vector<std::string> warnings;
  uint64_t host_pool_bytes = 0;  // 0: there is none
};

// The holder of a token.
struct Caller {
  uint64_t session = 0;
  bool is_operator = false;
  quota::TenantId tenant{};  // not an operator's
  std::string name;          // for the audit log: "uid 0, pid 4711 (gmb)"
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_PEER_H_
