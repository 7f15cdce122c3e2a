#ifndef GMB_DEVICE_CUDA_ABI_STREAMS_H_
#define GMB_DEVICE_CUDA_ABI_STREAMS_H_

#include <cstddef>

#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/result.h"

// Streams, events, and captures of streams.

// The driver's names, and its functions' parameters by what they are: who defines
// one may say more.
// NOLINTBEGIN(readability-identifier-naming)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

// Streams that are always there. No constants: a pointer of that kind is none.
#define CU_STREAM_LEGACY reinterpret_cast<CUstream>(1)
#define CU_STREAM_PER_THREAD reinterpret_cast<CUstream>(2)

enum CUstream_flags_enum : int {
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1,
};

enum CUevent_flags_enum : int {
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4,
};

enum CUstreamCaptureMode_enum : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
using CUstreamCaptureMode = CUstreamCaptureMode_enum;

enum CUstreamCaptureStatus_enum : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};
using CUstreamCaptureStatus = CUstreamCaptureStatus_enum;

struct CUgraphEdgeData_st {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
  unsigned char reserved[5];
};
using CUgraphEdgeData = CUgraphEdgeData_st;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
// Since CUDA 12.3.
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);

CUresult cuEventCreate(CUevent* event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_STREAMS_H_
