#ifndef GMB_TESTS_DEVICE_FAKE_CUDA_FAKE_CUDA_H_
#define GMB_TESTS_DEVICE_FAKE_CUDA_FAKE_CUDA_H_

#include <cstdint>

#include "device/cuda/abi/driver_api.h"

// A libcuda.so.1 over shared host memory, with one GPU of 1 GiB, or as many as
// the environment's FAKE_CUDA_DEVICES says, which then share it. Of it other
// processes use as many bytes as stand in the file that FAKE_CUDA_OTHERS names,
// since each process has a GPU of its own otherwise. It lets the
// code of the CUDA devices run, and each driver call fail, on machines without
// a GPU. It keeps the rules that we rely on (whole mappings, access set apart,
// a context for copies, copies to a stream that run no earlier than somebody
// waits for them, events and streams of one context that end with it) and
// nothing else. Uses that CUDA leaves undefined abort. Whether CUDA is like
// this is decided on a GPU, by the same contract suite.

extern "C" {

// The `k`-th driver call from now on, whichever it is, returns `result`; 1 is
// the next. A call that releases something has released it nevertheless.
// 0 switches this off. Calls that only name errors are not counted.
void FakeCudaFail(uint64_t k, CUresult result);

// The same for the k-th call and all later ones: a device that is lost.
// Calls that release something, and streams that are waited for, still do.
void FakeCudaFailFrom(uint64_t k, CUresult result);

// The `k`-th cuMemUnmap from now on does nothing but return `result`.
void FakeCudaRefuseUnmap(uint64_t k, CUresult result);

// The next copy to the device by cuMemcpyHtoD calls this first, in the thread
// that copies.
void FakeCudaDuringCopy(void (*what)());

// Likewise the next cuMemHostRegister.
void FakeCudaDuringPinning(void (*what)());

// From now on the contexts are in a state from which they do not come back, as
// after a kernel that went astray: calls that need one return `result`.
void FakeCudaFault(CUresult result);

// The same of this thread's current context alone.
void FakeCudaFaultHere(CUresult result);

// The GPU gets all work done that was submitted to it, without anybody who waits.
void FakeCudaFinishWork();

// The call that failed last, or null.
const char* FakeCudaFailed();

// Handles, mappings, reservations, allocations, retained contexts, streams,
// events and page-locked pieces that this process has not given back.
uint64_t FakeCudaLive();

// Bytes of host memory that are page-locked now.
uint64_t FakeCudaPageLockedBytes();

}  // extern "C"

#endif  // GMB_TESTS_DEVICE_FAKE_CUDA_FAKE_CUDA_H_
