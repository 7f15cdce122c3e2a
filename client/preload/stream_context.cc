// `gmb run`: makes the context of a stream current.
#include "client/preload/stream_context.h"

namespace gmb::preload {
namespace {

// Default streams are those of the current context.
bool IsDefault(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY ||
         stream == CU_STREAM_PER_THREAD;
}

}  // namespace

StreamContext::StreamContext(const Driver& driver, CUstream stream)
    : driver_(driver) {
  if (IsDefault(stream)) return;
  CUcontext of_stream = nullptr;
  result_ = GMB_REAL_CALL(driver_, cuStreamGetCtx, stream, &of_stream);
  if (result_ != CUDA_SUCCESS) return;
  CUcontext current = nullptr;
  if (driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
      current == of_stream) {
    return;
  }
  result_ = driver_.cuCtxPushCurrent_v2(of_stream);
  pushed_ = result_ == CUDA_SUCCESS;
}

StreamContext::~StreamContext() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.cuCtxPopCurrent_v2(&popped);
}

}  // namespace gmb::preload
