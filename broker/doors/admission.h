#ifndef GMB_BROKER_DOORS_ADMISSION_H_
#define GMB_BROKER_DOORS_ADMISSION_H_

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "broker/doors/door.h"

namespace gmb::broker {

// A process at the other end of a connection. Where the kernel numbers
// processes (Linux 6.9) no two of them are equal; elsewhere they are told apart
// by their pid, and all of foreign pid namespaces are 0 and look alike.
struct PeerProcess {
  bool numbered = false;
  uint64_t number = 0;  // ipc::ProcessNumber, or the pid

  friend auto operator<=>(const PeerProcess&, const PeerProcess&) = default;
};

// Of a peer whose greeting was proved; `pidfd` null: the kernel has none.
[[nodiscard]] PeerProcess ProcessOf(const base::UniqueFd* pidfd, pid_t pid);
// The process that connected the Unix socket `fd`. UNAVAILABLE: it has died.
// RESOURCE_EXHAUSTED: no fd is left to look with.
[[nodiscard]] absl::StatusOr<PeerProcess> ConnectedProcess(int fd);

// Which processes have greeted at which door, and so may speak HTTP/2 there.
// Thread-safe.
class Admission {
 public:
  void Add(uint64_t session, const Door& door, const PeerProcess& process,
           const std::string& tenant);
  void Remove(uint64_t session);

  // The sessions that this process has greeted for at this door.
  [[nodiscard]] std::vector<uint64_t> SessionsOf(
      const Door& door, const PeerProcess& process) const;
  [[nodiscard]] size_t SessionCount(const Door& door,
                                    const PeerProcess& process) const;
  // The tenant of these sessions: a door need not be a tenant's directory.
  // Empty: there are none.
  [[nodiscard]] std::string TenantOf(const Door& door,
                                     const PeerProcess& process) const;
  // Of all.
  [[nodiscard]] size_t sessions() const;

  // Called after each Add, on its thread. Set before the first one; null: none.
  void SetOnAdd(std::function<void()> on_add);

 private:
  struct Guest {
    Door door;
    PeerProcess process;

    friend auto operator<=>(const Guest&, const Guest&) = default;
  };

  mutable base::Mutex mu_;
  // Their tenants, by session.
  std::map<Guest, std::map<uint64_t, std::string>> sessions_of_
      ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Guest> guests_ ABSL_GUARDED_BY(mu_);  // by session
  std::function<void()> on_add_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_ADMISSION_H_
