#ifndef GMB_CLIENT_PRELOAD_SERVE_H_
#define GMB_CLIENT_PRELOAD_SERVE_H_

#include <new>

#include "base/cancels_later.h"
#include "client/preload/driver.h"
#include "client/preload/process_life.h"
#include "client/preload/stream_context.h"
#include "client/preload/the_memory.h"
#include "device/cuda/abi/driver_api.h"

// Parts that the exported functions share.

#define GMB_SERVED extern "C" __attribute__((visibility("default")))

namespace gmb::preload {

// Answers a call of the program: `serve(driver)` gives an Answer; when it
// leaves the call to the driver, `native(driver)` is the driver's own. Nothing
// is touched in a forked child, whose memory is its parent's.
template <typename Serve, typename Native>
CUresult AnswerCall(Serve serve, Native native) {
  if (InForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  const auto answer_here = [&]() noexcept -> Answer {
    const base::CancelsLater cancels_later;
    try {
      return serve(*driver);
    } catch (const std::bad_alloc&) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  };
  if (const Answer answer = answer_here()) return *answer;
  return native(*driver);  // where a thread may end
}

// The device of the current context, to `serve`; without one its error.
template <typename Serve>
Answer OnCurrentDevice(const Driver& driver, Serve serve) {
  CUdevice device = 0;
  if (const CUresult result = driver.cuCtxGetDevice(&device);
      result != CUDA_SUCCESS) {
    return result;
  }
  return serve(device);
}

// The answer of `serve` in the context of the stream; without a context, its
// error.
template <typename Serve>
Answer InContextOf(const Driver& driver, CUstream stream, Serve serve) {
  const StreamContext context(driver, stream);
  if (context.result() != CUDA_SUCCESS) return context.result();
  return serve();
}

// In the variants named _ptsz the default stream is that of each thread.
inline CUstream OfThread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SERVE_H_
