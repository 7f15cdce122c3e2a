#ifndef GMB_CLIENT_PRELOAD_STREAM_CONTEXT_H_
#define GMB_CLIENT_PRELOAD_STREAM_CONTEXT_H_

#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Makes the context of a stream current in this thread, and the one that was
// current before it again at the end. The driver records an event on a stream
// of the event's own context only, and allocates in a stream's order on the
// stream's device, whatever is current. Check result() before relying on it.
class StreamContext {
 public:
  StreamContext(const Driver& driver, CUstream stream);
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;
  ~StreamContext();

  [[nodiscard]] CUresult result() const { return result_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_STREAM_CONTEXT_H_
