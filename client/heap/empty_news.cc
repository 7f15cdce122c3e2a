// News of a heap's empty chunks.
#include "client/heap/empty_news.h"

namespace gmb::internal {

void EmptyNews::TellChanged(uint64_t empty_bytes) {
  told_ = empty_bytes;
  if (listener_ != nullptr) listener_(empty_bytes);
}

}  // namespace gmb::internal
