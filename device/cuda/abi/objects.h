#ifndef GMB_DEVICE_CUDA_ABI_OBJECTS_H_
#define GMB_DEVICE_CUDA_ABI_OBJECTS_H_

#include <cstdint>

// The driver's names of its things: numbers, and pointers to what only it
// knows.

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using cuuint64_t = uint64_t;

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;

using CUcontext = struct CUctx_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

struct CUuuid_st {
  char bytes[16];
};
using CUuuid = CUuuid_st;
// NOLINTEND(readability-identifier-naming)

#endif  // GMB_DEVICE_CUDA_ABI_OBJECTS_H_
