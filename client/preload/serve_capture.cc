// `gmb run`: captures of streams, which nothing may synchronise with; no lease
// is parked over one.
#include <optional>

#include "client/preload/exported.h"
#include "client/preload/ipc_memory.h"
#include "client/preload/program_gate.h"
#include "client/preload/serve.h"

using gmb::base::CancelsLater;
using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Captures;
using gmb::preload::Driver;
using gmb::preload::GatedCall;
using gmb::preload::OfThread;
using gmb::preload::StreamContext;
using gmb::preload::TheIpcMemory;
using gmb::preload::TheMemory;

namespace {

// A stream's; nothing when the driver does not say.
struct Place {
  CUcontext context = nullptr;
  std::optional<CUdevice> device = {};
};

Place PlaceOf(const Driver& driver, CUstream stream) {
  const StreamContext scope(driver, stream);
  Place place;
  CUdevice device = 0;
  if (scope.result() != CUDA_SUCCESS ||
      driver.cuCtxGetCurrent(&place.context) != CUDA_SUCCESS) {
    return {};
  }
  if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) place.device = device;
  return place;
}

template <typename Begin>
CUresult BeginCapture(CUstream stream, Begin begin) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      // It counts as a call that touches memory: nothing is
                      // parked over a capture.
                      const CancelsLater cancels_later;  // it has a turn
                      const GatedCall call;
                      if (!call.in()) return CUDA_ERROR_SYSTEM_NOT_READY;
                      const Place place = PlaceOf(driver, stream);
                      Captures& captures = TheMemory(driver).captures();
                      captures.AwaitTurn();
                      const CUresult result = begin(driver);
                      if (result == CUDA_SUCCESS) {
                        captures.Began(stream, place.context, place.device);
                      } else {
                        captures.DidNotBegin();
                      }
                      return result;
                    });
}

CUresult EndCapture(CUstream stream, CUgraph* graph) {
  return AnswerCall(
      [](const Driver&) -> Answer { return std::nullopt; },
      [&](const Driver& driver) {
        const CancelsLater cancels_later;
        const CUresult result =
            GMB_REAL_CALL(driver, cuStreamEndCapture, stream, graph);
        // It may have failed and ended the capture nevertheless.
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
            status == CU_STREAM_CAPTURE_STATUS_NONE) {
          TheMemory(driver).captures().Ended(stream,
                                             PlaceOf(driver, stream).context);
          TheMemory(driver).sweeper().Sweep();
          TheIpcMemory(driver).Sweep();
        }
        return result;
      });
}

// A stream that ends takes its capture along.
template <typename End>
CUresult DestroyStream(CUstream stream, End end) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      // Before: afterwards another one may have its name.
                      CUstreamCaptureStatus status =
                          CU_STREAM_CAPTURE_STATUS_NONE;
                      driver.cuStreamIsCapturing(stream, &status);
                      if (status == CU_STREAM_CAPTURE_STATUS_NONE)
                        return end(driver);
                      CUcontext context = PlaceOf(driver, stream).context;
                      const CUresult result = end(driver);
                      if (result == CUDA_SUCCESS)
                        TheMemory(driver).captures().Ended(stream, context);
                      return result;
                    });
}

CUresult BeginOld(CUstream stream) {
  return BeginCapture(stream, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuStreamBeginCapture_v1, stream);
  });
}

CUresult BeginToGraph(CUstream stream, CUgraph graph,
                      const CUgraphNode* dependencies,
                      const CUgraphEdgeData* edges, size_t count,
                      CUstreamCaptureMode mode) {
  return BeginCapture(stream, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuStreamBeginCaptureToGraph, stream, graph,
                         dependencies, edges, count, mode);
  });
}

CUresult Begin(CUstream stream, CUstreamCaptureMode mode) {
  return BeginCapture(stream, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuStreamBeginCapture_v2, stream, mode);
  });
}

}  // namespace

GMB_SERVED CUresult cuStreamBeginCapture_v2(CUstream stream,
                                            CUstreamCaptureMode mode) {
  return Begin(stream, mode);
}

GMB_SERVED CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                                 CUstreamCaptureMode mode) {
  return Begin(OfThread(stream), mode);
}

GMB_SERVED CUresult cuStreamBeginCapture(CUstream stream) {
  return BeginOld(stream);
}

GMB_SERVED CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  return BeginOld(OfThread(stream));
}

GMB_SERVED CUresult cuStreamDestroy_v2(CUstream stream) {
  return DestroyStream(stream, [&](const Driver& driver) {
    return driver.cuStreamDestroy_v2(stream);
  });
}

GMB_SERVED CUresult cuStreamDestroy(CUstream stream) {
  return DestroyStream(stream, [&](const Driver& driver) {
    return GMB_REAL_CALL(driver, cuStreamDestroy_v1, stream);
  });
}

GMB_SERVED CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                const CUgraphNode* dependencies,
                                                const CUgraphEdgeData* edges,
                                                size_t count,
                                                CUstreamCaptureMode mode) {
  return BeginToGraph(stream, graph, dependencies, edges, count, mode);
}

GMB_SERVED CUresult cuStreamBeginCaptureToGraph_ptsz(
    CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
    const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return BeginToGraph(OfThread(stream), graph, dependencies, edges, count,
                      mode);
}

GMB_SERVED CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return EndCapture(stream, graph);
}

GMB_SERVED CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return EndCapture(OfThread(stream), graph);
}
