// Stands in for rmm_peer.cc in a build without RMM.
#include "bench/heap/rmm_peer.h"

namespace gmb::bench {

std::unique_ptr<Peer> MakeRmmPeer() { return nullptr; }

}  // namespace gmb::bench
