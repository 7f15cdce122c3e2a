// `gmb run`: the program's own waits for the GPU. They are the driver's, and are
// noted.
#include "client/preload/exported.h"
#include "client/preload/serve.h"
#include "client/preload/synchronisations.h"

using gmb::preload::Driver;
using gmb::preload::InForkedChild;
using gmb::preload::OfThread;
using gmb::preload::Synchronisations;

namespace {

// A thread may end in the driver's function: nothing is to be done here then.
template <typename Wait>
CUresult NoteThat(Wait wait) {
  if (InForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  const CUresult result = wait(*driver);
  if (result == CUDA_SUCCESS) Synchronisations::Note();
  return result;
}

CUresult Await(CUstream stream) {
  return NoteThat([stream](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuStreamSynchronize, stream);
  });
}

}  // namespace

GMB_SERVED CUresult cuStreamSynchronize(CUstream stream) {
  return Await(stream);
}

GMB_SERVED CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return Await(OfThread(stream));
}

GMB_SERVED CUresult cuEventSynchronize(CUevent event) {
  return NoteThat([event](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuEventSynchronize, event);
  });
}

GMB_SERVED CUresult cuCtxSynchronize() {
  return NoteThat([](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuCtxSynchronize);
  });
}

GMB_SERVED CUresult cuCtxSynchronize_v2(CUcontext context) {
  return NoteThat([context](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuCtxSynchronize_v2, context);
  });
}
