// The captures that a heap knows of.
#include "client/heap/stream_captures.h"

namespace gmb::internal {

StreamCaptures::Capture StreamCaptures::Find(void* stream) const {
  const auto found = by_stream_.find(stream);
  return found == by_stream_.end() ? Capture() : found->second;
}

}  // namespace gmb::internal
