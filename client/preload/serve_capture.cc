#include "client/preload/exported.h"
#include "client/preload/serve.h"

// Captures of streams, which nothing may synchronise with.

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Captures;
using gmb::preload::Driver;
using gmb::preload::OfThread;
using gmb::preload::TheMemory;

namespace {

template <typename Begin>
CUresult BeginCapture(CUstream stream, Begin begin) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      Captures& captures = TheMemory(driver).captures();
                      captures.AwaitTurn();
                      const CUresult result = begin(driver);
                      if (result == CUDA_SUCCESS) {
                        captures.Began(stream);
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
        const CUresult result =
            GMB_REAL_CALL(driver, cuStreamEndCapture, stream, graph);
        // It may have failed and ended the capture nevertheless.
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
            status == CU_STREAM_CAPTURE_STATUS_NONE) {
          TheMemory(driver).captures().Ended(stream);
          TheMemory(driver).Sweep();
        }
        return result;
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

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): ours say
// more than those of cuda.h.
GMB_SERVED CUresult cuStreamBeginCapture_v2(CUstream stream,
                                            CUstreamCaptureMode mode) {
  return Begin(stream, mode);
}

GMB_SERVED CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                                 CUstreamCaptureMode mode) {
  return Begin(OfThread(stream), mode);
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
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
