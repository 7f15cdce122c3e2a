#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/device/fake_cuda/fake_cuda.h"
#include "tests/device/fake_cuda/state.h"

// The fake driver's streams and events, page-locked memory, and copies by
// streams. Such a copy is made when somebody waits for it: a caller that unmaps
// or reads too early finds the page gone or the bytes missing.

using fake_cuda::Contexts;
using fake_cuda::Copy;
using fake_cuda::Enter;
using fake_cuda::Event;
using fake_cuda::Stream;
using fake_cuda::TheGpu;

namespace {

void RunUntil(Stream* stream, uint64_t number) {
  while (stream->done < number) {
    const Copy copy = stream->pending.front();
    stream->pending.pop_front();
    ++stream->done;
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

void RunAll(Stream* stream) {
  RunUntil(stream, stream->done + stream->pending.size());
}

// As the driver: host memory of a copy lies in one page-locked piece, or in
// none.
bool CrossesPageLock(const void* host, uint64_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(host);
  const uintptr_t end = start + bytes;
  return std::any_of(
      TheGpu().page_locked.begin(), TheGpu().page_locked.end(),
      [&](const auto& piece) {
        const uintptr_t piece_end = piece.first + piece.second;
        const bool overlaps = start < piece_end && piece.first < end;
        const bool inside = piece.first <= start && end <= piece_end;
        return overlaps && !inside;
      });
}

// To use an event that is gone is undefined.
Event& EventOf(CUevent name) {
  const auto event = TheGpu().events.find(name);
  if (event == TheGpu().events.end()) std::abort();
  return event->second;
}

CUresult ContextOf(CUstream name, CUcontext* context) {
  if (name == nullptr || name == CU_STREAM_LEGACY ||
      name == CU_STREAM_PER_THREAD) {
    return fake_cuda::GetCurrent(context);
  }
  const auto stream = TheGpu().streams.find(name);
  if (stream == TheGpu().streams.end()) std::abort();
  *context = stream->second.context;
  return CUDA_SUCCESS;
}

// The work that the event of a stream waits for. The legacy default stream
// waits for the others of its context; work of its own, or of a thread's
// default stream, there is none here.
std::map<CUstream, uint64_t> SubmittedTo(CUstream name, CUcontext context) {
  std::map<CUstream, uint64_t> submitted;
  const bool legacy = name == nullptr || name == CU_STREAM_LEGACY;
  for (const auto& [other, stream] : TheGpu().streams) {
    if (other == name || (legacy && stream.context == context)) {
      submitted[other] = stream.done + stream.pending.size();
    }
  }
  return submitted;
}

CUresult Enqueue(CUstream name, const Copy& copy, const void* host) {
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const auto stream = TheGpu().streams.find(name);
  if (stream == TheGpu().streams.end() || CrossesPageLock(host, copy.bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  stream->second.pending.push_back(copy);
  return CUDA_SUCCESS;
}

// A name that is no address of anything.
template <typename Name>
Name NewName() {
  return reinterpret_cast<Name>(TheGpu().next_handle++);
}

}  // namespace

extern "C" {

uint64_t FakeCudaPageLockedBytes() {
  FAKE_LOCK();
  uint64_t bytes = 0;
  for (const auto& piece : TheGpu().page_locked) bytes += piece.second;
  return bytes;
}

void FakeCudaFinishWork() {
  FAKE_LOCK();
  for (auto& [name, stream] : TheGpu().streams) RunAll(&stream);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  FAKE_ENTER();
  CUcontext current = nullptr;
  if (const CUresult result = fake_cuda::GetCurrent(&current);
      result != CUDA_SUCCESS) {
    return result;
  }
  *stream = NewName<CUstream>();
  TheGpu().streams[*stream].context = current;
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream name) {
  FAKE_LOCK();
  const auto stream = TheGpu().streams.find(name);
  if (stream == TheGpu().streams.end()) return CUDA_ERROR_INVALID_VALUE;
  RunAll(&stream->second);
  TheGpu().capturing.erase(name);
  TheGpu().streams.erase(stream);
  return Enter(__func__);
}

CUresult cuStreamSynchronize(CUstream name) {
  FAKE_LOCK();
  if (name == nullptr) return cuCtxSynchronize();
  const auto stream = TheGpu().streams.find(name);
  if (stream == TheGpu().streams.end()) return CUDA_ERROR_INVALID_VALUE;
  RunAll(&stream->second);
  return Enter(__func__);
}

CUresult cuStreamQuery(CUstream name) {
  FAKE_ENTER();
  const auto stream = TheGpu().streams.find(name);
  if (stream == TheGpu().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  return stream->second.pending.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

// Of the current context alone; of a primary one and the green ones of it. It
// ends all captures.
CUresult cuCtxSynchronize() {
  FAKE_ENTER();
  if (!TheGpu().capturing.empty()) {
    TheGpu().capturing.clear();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUcontext current = nullptr;
  if (const CUresult result = fake_cuda::GetCurrent(&current);
      result != CUDA_SUCCESS) {
    return result;
  }
  for (auto& [name, stream] : TheGpu().streams) {
    const auto green = TheGpu().greens.find(stream.context);
    const CUcontext primary =
        green == TheGpu().greens.end() ? nullptr : green->second;
    if (stream.context == current || primary == current) RunAll(&stream);
  }
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_ENTER();
  CUcontext current = nullptr;
  if (const CUresult result = fake_cuda::GetCurrent(&current);
      result != CUDA_SUCCESS) {
    return result;
  }
  *event = NewName<CUevent>();
  TheGpu().events[*event].context = current;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  FAKE_LOCK();
  EventOf(event);
  TheGpu().events.erase(event);
  return Enter(__func__);
}

CUresult cuStreamGetCtx(CUstream name, CUcontext* context) {
  FAKE_ENTER();
  return ContextOf(name, context);
}

CUresult cuEventRecord(CUevent name, CUstream stream) {
  FAKE_ENTER();
  CUcontext context = nullptr;
  if (const CUresult result = ContextOf(stream, &context);
      result != CUDA_SUCCESS) {
    return result;
  }
  Event& event = EventOf(name);
  if (event.context != context) return CUDA_ERROR_INVALID_HANDLE;
  event.after = SubmittedTo(stream, context);
  return CUDA_SUCCESS;
}

// With a capture under way the driver says so, and the capture is lost.
// NOLINTNEXTLINE(readability-identifier-naming): the driver's name
CUresult cuCtxRecordEvent(CUcontext context, CUevent name) {
  FAKE_ENTER();
  Event& event = EventOf(name);
  if (event.context != context) return CUDA_ERROR_INVALID_HANDLE;
  if (!TheGpu().capturing.empty()) std::abort();
  event.after = SubmittedTo(nullptr, context);
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent name) {
  FAKE_ENTER();
  if (!TheGpu().capturing.empty()) std::abort();  // it would end the capture
  for (const auto& [stream, number] : EventOf(name).after) {
    const auto found = TheGpu().streams.find(stream);
    if (found != TheGpu().streams.end() && found->second.done < number) {
      return CUDA_ERROR_NOT_READY;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent name) {
  FAKE_ENTER();
  for (const auto& [stream, number] : EventOf(name).after) {
    const auto found = TheGpu().streams.find(stream);
    if (found != TheGpu().streams.end()) RunUntil(&found->second, number);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
  FAKE_ENTER();
  return Enqueue(stream, {to, reinterpret_cast<void*>(from), bytes}, to);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes,
                           CUstream stream) {
  FAKE_ENTER();
  return Enqueue(stream, {reinterpret_cast<void*>(to), from, bytes}, from);
}

// By the stream's GPU, to which both places have to be mapped.
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
  FAKE_ENTER();
  if (!fake_cuda::Reaches(to) || !fake_cuda::Reaches(from))
    return CUDA_ERROR_INVALID_VALUE;
  auto* const source = reinterpret_cast<void*>(from);
  return Enqueue(stream, {reinterpret_cast<void*>(to), source, bytes}, source);
}

CUresult cuMemHostRegister(void* start, size_t bytes, unsigned) {
  if (const auto during = TheGpu().during_pinning.exchange(nullptr)) during();
  FAKE_ENTER();
  if (Contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  TheGpu().page_locked.emplace(reinterpret_cast<uintptr_t>(start), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* start) {
  FAKE_LOCK();
  if (TheGpu().page_locked.erase(reinterpret_cast<uintptr_t>(start)) == 0) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  return Enter(__func__);
}

}  // extern "C"
