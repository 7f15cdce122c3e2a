#ifndef GMB_BENCH_HEAP_RMM_PEER_H_
#define GMB_BENCH_HEAP_RMM_PEER_H_

#include <memory>

#include "bench/heap/peers.h"

namespace gmb::bench {

// RMM's pool over cudaMalloc, of the device that is current in the calling
// thread. Null in a build without RMM (GMB_RMM_SITE), and where there is no
// memory for it.
[[nodiscard]] std::unique_ptr<Peer> MakeRmmPeer();

}  // namespace gmb::bench

#endif  // GMB_BENCH_HEAP_RMM_PEER_H_
