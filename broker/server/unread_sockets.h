#ifndef GMB_BROKER_SERVER_UNREAD_SOCKETS_H_
#define GMB_BROKER_SERVER_UNREAD_SOCKETS_H_

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "broker/server/connection_table.h"
#include "broker/server/fds_in_flight.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

// Looks whether peers have read the fds that they were sent, those whose
// connection has ended, too. The handle server's thread's.
class UnreadSockets {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A connection ends. While its peer still has the socket with unread fds,
  // those stay in flight, and in the tenant's account.
  void Leave(const HandleConnection& connection);
  [[nodiscard]] bool any_left() const { return !left_.empty(); }

  // Gives back what was read. True: some peers have not read all fds that they
  // were sent.
  bool Look(const ConnectionTable& connections);
  // That costs a look at every peer, so not for each that greets.
  [[nodiscard]] bool MayLookAgain(Time now) const;

 private:
  std::vector<std::pair<std::shared_ptr<ipc::SeqpacketSocket>,
                        std::shared_ptr<UnreadFds>>>
      left_;
  Time looked_at_{};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_UNREAD_SOCKETS_H_
