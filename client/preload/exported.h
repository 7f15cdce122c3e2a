#ifndef GMB_CLIENT_PRELOAD_EXPORTED_H_
#define GMB_CLIENT_PRELOAD_EXPORTED_H_

#include "device/cuda/abi/driver_api.h"

// The driver's functions that this library exports and calls by no name: first
// versions, those that are out of use, and those for each thread's default
// stream.

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version,
                          cuuint64_t flags);
CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle,
                            unsigned int flags);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxAttach(CUcontext* context, unsigned int flags);
CUresult cuCtxDetach(CUcontext context);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCapture_ptsz(CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes,
                              CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                      CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                      CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                          const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* edges,
                                          size_t count,
                                          CUstreamCaptureMode mode);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuCtxSynchronize_v2(CUcontext context);

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_CLIENT_PRELOAD_EXPORTED_H_
