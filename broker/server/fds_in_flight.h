#ifndef GMB_BROKER_SERVER_FDS_IN_FLIGHT_H_
#define GMB_BROKER_SERVER_FDS_IN_FLIGHT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace gmb::broker {

// How many fds lie in sockets, sent and not read. The kernel lets a user have
// as many of them as one of the user's processes may open (RLIMIT_NOFILE), root
// excepted. Beyond that the broker could send nobody a slab. A tenant may have
// as many as are left to all others together: however many tenants leave theirs
// unread, the next one still finds room. Thread-safe.
class FdsInFlight {
 public:
  explicit FdsInFlight(uint64_t most) : most_(most) {}
  // As many as the kernel lets this process have, but for some to greet with.
  static uint64_t MostOfThisProcess();

  // False: `tenant` has too many of them.
  [[nodiscard]] bool Take(const std::string& tenant, uint64_t fds);
  // Those that are in sockets already.
  void Add(const std::string& tenant, uint64_t fds);
  void GiveBack(const std::string& tenant, uint64_t fds);

 private:
  const uint64_t most_;
  base::Mutex mu_;
  uint64_t total_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, uint64_t> by_tenant_ ABSL_GUARDED_BY(mu_);
};

// Those of one connection. Gives back what is left when it goes. Thread-safe.
class UnreadFds {
 public:
  UnreadFds(std::shared_ptr<FdsInFlight> all, std::string tenant)
      : all_(std::move(all)), tenant_(std::move(tenant)) {}
  ~UnreadFds();
  UnreadFds(const UnreadFds&) = delete;
  UnreadFds& operator=(const UnreadFds&) = delete;

  // Before so many are sent; then Sent or NotSent. False: not now.
  [[nodiscard]] bool Take(uint64_t fds);
  // Nobody knows how many lie in its socket already: a frame's.
  void Inherit();
  void Sent();
  void NotSent();
  // Gives back what was sent on this socket, if all is read. False: some is
  // not.
  bool GiveBackIfRead(int socket);

 private:
  const std::shared_ptr<FdsInFlight> all_;
  const std::string tenant_;
  base::Mutex mu_;
  uint64_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t sending_ ABSL_GUARDED_BY(mu_) = 0;  // of those taken
};

// Whether something that was sent on this Unix socket has not been read.
[[nodiscard]] bool HasUnread(int socket);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_FDS_IN_FLIGHT_H_
