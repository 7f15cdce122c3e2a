#ifndef GMB_BROKER_SERVER_STREAM_CONNECTION_H_
#define GMB_BROKER_SERVER_STREAM_CONNECTION_H_

#include <memory>

#include "ipc/seqpacket.h"

namespace gmb::broker {

// A connection that is to be a session's stream.
struct StreamConnection {
  std::shared_ptr<ipc::SeqpacketSocket> socket;
  bool sends_no_fds = false;  // because the kernel refuses them
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_STREAM_CONNECTION_H_
