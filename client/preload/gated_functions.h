#ifndef GMB_CLIENT_PRELOAD_GATED_FUNCTIONS_H_
#define GMB_CLIENT_PRELOAD_GATED_FUNCTIONS_H_

// The driver's functions that touch device memory, as libcuda.so.1 of CUDA 13.0
// exports them, each with how many arguments it takes: integers, pointers, and
// structs of at most eight bytes, which all travel as one word each.
// tests/preload/gated_words_test.cc holds the list against cuda.h.
//
// Not among them: synchronising, queries and events, host functions, modules,
// arrays, managed memory. A thread that waits for the GPU must not keep the gate
// open. The program's own memory (its handles, its pools) is not
// leased, and never goes away.

// clang-format off
#define GMB_TOUCHING_FUNCTIONS(F) \
  /* Kernels. */ \
  F(cuLaunch, 1) \
  F(cuLaunchCooperativeKernel, 10) \
  F(cuLaunchCooperativeKernelMultiDevice, 3) \
  F(cuLaunchCooperativeKernel_ptsz, 10) \
  F(cuLaunchGrid, 3) \
  F(cuLaunchGridAsync, 4) \
  F(cuLaunchKernel, 11) \
  F(cuLaunchKernelEx, 4) \
  F(cuLaunchKernelEx_ptsz, 4) \
  F(cuLaunchKernel_ptsz, 11) \
  /* Graphs. */ \
  F(cuGraphLaunch, 2) \
  F(cuGraphLaunch_ptsz, 2) \
  F(cuGraphUpload, 2) \
  F(cuGraphUpload_ptsz, 2) \
  /* Copies. */ \
  F(cuMemcpy, 3) \
  F(cuMemcpy2D, 1) \
  F(cuMemcpy2DAsync, 2) \
  F(cuMemcpy2DAsync_v2, 2) \
  F(cuMemcpy2DAsync_v2_ptsz, 2) \
  F(cuMemcpy2DUnaligned, 1) \
  F(cuMemcpy2DUnaligned_v2, 1) \
  F(cuMemcpy2DUnaligned_v2_ptds, 1) \
  F(cuMemcpy2D_v2, 1) \
  F(cuMemcpy2D_v2_ptds, 1) \
  F(cuMemcpy3D, 1) \
  F(cuMemcpy3DAsync, 2) \
  F(cuMemcpy3DAsync_v2, 2) \
  F(cuMemcpy3DAsync_v2_ptsz, 2) \
  F(cuMemcpy3DBatchAsync, 5) \
  F(cuMemcpy3DBatchAsync_ptsz, 5) \
  F(cuMemcpy3DBatchAsync_v2, 4) \
  F(cuMemcpy3DBatchAsync_v2_ptsz, 4) \
  F(cuMemcpy3DPeer, 1) \
  F(cuMemcpy3DPeerAsync, 2) \
  F(cuMemcpy3DPeerAsync_ptsz, 2) \
  F(cuMemcpy3DPeer_ptds, 1) \
  F(cuMemcpy3D_v2, 1) \
  F(cuMemcpy3D_v2_ptds, 1) \
  F(cuMemcpyAsync, 4) \
  F(cuMemcpyAsync_ptsz, 4) \
  F(cuMemcpyAtoA, 5) \
  F(cuMemcpyAtoA_v2, 5) \
  F(cuMemcpyAtoA_v2_ptds, 5) \
  F(cuMemcpyAtoD, 4) \
  F(cuMemcpyAtoD_v2, 4) \
  F(cuMemcpyAtoD_v2_ptds, 4) \
  F(cuMemcpyAtoH, 4) \
  F(cuMemcpyAtoHAsync, 5) \
  F(cuMemcpyAtoHAsync_v2, 5) \
  F(cuMemcpyAtoHAsync_v2_ptsz, 5) \
  F(cuMemcpyAtoH_v2, 4) \
  F(cuMemcpyAtoH_v2_ptds, 4) \
  F(cuMemcpyBatchAsync, 9) \
  F(cuMemcpyBatchAsync_ptsz, 9) \
  F(cuMemcpyBatchAsync_v2, 8) \
  F(cuMemcpyBatchAsync_v2_ptsz, 8) \
  F(cuMemcpyDtoA, 4) \
  F(cuMemcpyDtoA_v2, 4) \
  F(cuMemcpyDtoA_v2_ptds, 4) \
  F(cuMemcpyDtoD, 3) \
  F(cuMemcpyDtoDAsync, 4) \
  F(cuMemcpyDtoDAsync_v2, 4) \
  F(cuMemcpyDtoDAsync_v2_ptsz, 4) \
  F(cuMemcpyDtoD_v2, 3) \
  F(cuMemcpyDtoD_v2_ptds, 3) \
  F(cuMemcpyDtoH, 3) \
  F(cuMemcpyDtoHAsync, 4) \
  F(cuMemcpyDtoHAsync_v2, 4) \
  F(cuMemcpyDtoHAsync_v2_ptsz, 4) \
  F(cuMemcpyDtoH_v2, 3) \
  F(cuMemcpyDtoH_v2_ptds, 3) \
  F(cuMemcpyHtoA, 4) \
  F(cuMemcpyHtoAAsync, 5) \
  F(cuMemcpyHtoAAsync_v2, 5) \
  F(cuMemcpyHtoAAsync_v2_ptsz, 5) \
  F(cuMemcpyHtoA_v2, 4) \
  F(cuMemcpyHtoA_v2_ptds, 4) \
  F(cuMemcpyHtoD, 3) \
  F(cuMemcpyHtoDAsync, 4) \
  F(cuMemcpyHtoDAsync_v2, 4) \
  F(cuMemcpyHtoDAsync_v2_ptsz, 4) \
  F(cuMemcpyHtoD_v2, 3) \
  F(cuMemcpyHtoD_v2_ptds, 3) \
  F(cuMemcpyPeer, 5) \
  F(cuMemcpyPeerAsync, 6) \
  F(cuMemcpyPeerAsync_ptsz, 6) \
  F(cuMemcpyPeer_ptds, 5) \
  F(cuMemcpy_ptds, 3) \
  /* Sets. */ \
  F(cuMemsetD16, 3) \
  F(cuMemsetD16Async, 4) \
  F(cuMemsetD16Async_ptsz, 4) \
  F(cuMemsetD16_v2, 3) \
  F(cuMemsetD16_v2_ptds, 3) \
  F(cuMemsetD2D16, 5) \
  F(cuMemsetD2D16Async, 6) \
  F(cuMemsetD2D16Async_ptsz, 6) \
  F(cuMemsetD2D16_v2, 5) \
  F(cuMemsetD2D16_v2_ptds, 5) \
  F(cuMemsetD2D32, 5) \
  F(cuMemsetD2D32Async, 6) \
  F(cuMemsetD2D32Async_ptsz, 6) \
  F(cuMemsetD2D32_v2, 5) \
  F(cuMemsetD2D32_v2_ptds, 5) \
  F(cuMemsetD2D8, 5) \
  F(cuMemsetD2D8Async, 6) \
  F(cuMemsetD2D8Async_ptsz, 6) \
  F(cuMemsetD2D8_v2, 5) \
  F(cuMemsetD2D8_v2_ptds, 5) \
  F(cuMemsetD32, 3) \
  F(cuMemsetD32Async, 4) \
  F(cuMemsetD32Async_ptsz, 4) \
  F(cuMemsetD32_v2, 3) \
  F(cuMemsetD32_v2_ptds, 3) \
  F(cuMemsetD8, 3) \
  F(cuMemsetD8Async, 4) \
  F(cuMemsetD8Async_ptsz, 4) \
  F(cuMemsetD8_v2, 3) \
  F(cuMemsetD8_v2_ptds, 3) \
  /* Memory operations of streams. */ \
  F(cuStreamBatchMemOp, 4) \
  F(cuStreamBatchMemOp_ptsz, 4) \
  F(cuStreamBatchMemOp_v2, 4) \
  F(cuStreamBatchMemOp_v2_ptsz, 4) \
  F(cuStreamSetAttribute, 3) \
  F(cuStreamSetAttribute_ptsz, 3) \
  F(cuStreamWaitValue32, 4) \
  F(cuStreamWaitValue32_ptsz, 4) \
  F(cuStreamWaitValue32_v2, 4) \
  F(cuStreamWaitValue32_v2_ptsz, 4) \
  F(cuStreamWaitValue64, 4) \
  F(cuStreamWaitValue64_ptsz, 4) \
  F(cuStreamWaitValue64_v2, 4) \
  F(cuStreamWaitValue64_v2_ptsz, 4) \
  F(cuStreamWriteValue32, 4) \
  F(cuStreamWriteValue32_ptsz, 4) \
  F(cuStreamWriteValue32_v2, 4) \
  F(cuStreamWriteValue32_v2_ptsz, 4) \
  F(cuStreamWriteValue64, 4) \
  F(cuStreamWriteValue64_ptsz, 4) \
  F(cuStreamWriteValue64_v2, 4) \
  F(cuStreamWriteValue64_v2_ptsz, 4) \
  /* Decompression. */ \
  F(cuMemBatchDecompressAsync, 5) \
  F(cuMemBatchDecompressAsync_ptsz, 5) \
  /* Building graphs, which resolves pointers. */ \
  F(cuGraphAddBatchMemOpNode, 5) \
  F(cuGraphAddChildGraphNode, 5) \
  F(cuGraphAddKernelNode, 5) \
  F(cuGraphAddKernelNode_v2, 5) \
  F(cuGraphAddMemcpyNode, 6) \
  F(cuGraphAddMemsetNode, 6) \
  F(cuGraphAddNode, 5) \
  F(cuGraphAddNode_v2, 6) \
  F(cuGraphBatchMemOpNodeSetParams, 2) \
  F(cuGraphExecBatchMemOpNodeSetParams, 3) \
  F(cuGraphExecChildGraphNodeSetParams, 3) \
  F(cuGraphExecKernelNodeSetParams, 3) \
  F(cuGraphExecKernelNodeSetParams_v2, 3) \
  F(cuGraphExecMemcpyNodeSetParams, 4) \
  F(cuGraphExecMemsetNodeSetParams, 4) \
  F(cuGraphExecNodeSetParams, 3) \
  F(cuGraphExecUpdate, 4) \
  F(cuGraphExecUpdate_v2, 3) \
  F(cuGraphInstantiate, 5) \
  F(cuGraphInstantiateWithFlags, 3) \
  F(cuGraphInstantiateWithParams, 3) \
  F(cuGraphInstantiateWithParams_ptsz, 3) \
  F(cuGraphInstantiate_v2, 5) \
  F(cuGraphKernelNodeSetAttribute, 3) \
  F(cuGraphKernelNodeSetParams, 2) \
  F(cuGraphKernelNodeSetParams_v2, 2) \
  F(cuGraphMemcpyNodeSetParams, 2) \
  F(cuGraphMemsetNodeSetParams, 2) \
  F(cuGraphNodeSetParams, 2) \
  /* Takers of an address. */ \
  F(cuMemAdvise, 4) \
  F(cuMemAdvise_v2, 4) \
  F(cuMemDiscardAndPrefetchBatchAsync, 8) \
  F(cuMemDiscardAndPrefetchBatchAsync_ptsz, 8) \
  F(cuMemDiscardBatchAsync, 5) \
  F(cuMemDiscardBatchAsync_ptsz, 5) \
  F(cuMemMapArrayAsync, 3) \
  F(cuMemMapArrayAsync_ptsz, 3) \
  F(cuMemPrefetchAsync, 4) \
  F(cuMemPrefetchAsync_ptsz, 4) \
  F(cuMemPrefetchAsync_v2, 5) \
  F(cuMemPrefetchAsync_v2_ptsz, 5) \
  F(cuMemPrefetchBatchAsync, 8) \
  F(cuMemPrefetchBatchAsync_ptsz, 8) \
  F(cuStreamAttachMemAsync, 4) \
  F(cuStreamAttachMemAsync_ptsz, 4) \
  F(cuSurfObjectCreate, 2) \
  F(cuTensorMapEncodeIm2col, 15) \
  F(cuTensorMapEncodeIm2colWide, 16) \
  F(cuTensorMapEncodeTiled, 12) \
  F(cuTensorMapReplaceAddress, 2) \
  F(cuTexObjectCreate, 4) \
  F(cuTexRefSetAddress, 4) \
  F(cuTexRefSetAddress2D, 4) \
  F(cuTexRefSetAddress2D_v2, 4) \
  F(cuTexRefSetAddress2D_v3, 4) \
  F(cuTexRefSetAddress_v2, 4)

// These ask about an address. A foreign one concerns nobody: a thread that looks
// at host memory must not bring gigabytes back. The second number is the
// argument, counted from 0, that has the address.
#define GMB_ASKING_FUNCTIONS(F) \
  F(cuPointerGetAttribute, 3, 2) \
  F(cuPointerGetAttributes, 4, 3)

// These lock and unlock pages of host memory. The driver has another thread's
// unmap wait until they are over, half a second for a GiB (docs/biased_gate.md).
#define GMB_PINNING_FUNCTIONS(F) \
  F(cuMemAllocHost, 2) \
  F(cuMemAllocHost_v2, 2) \
  F(cuMemFreeHost, 1) \
  F(cuMemHostAlloc, 3) \
  F(cuMemHostRegister, 3) \
  F(cuMemHostRegister_v2, 3) \
  F(cuMemHostUnregister, 1)

// These show our memory to somebody who enters no gate of this process: a
// network card or another process. A process that calls one of them for leased
// memory is never parked again. The second number is the argument that has the
// address, or -1.
#define GMB_SHARING_FUNCTIONS(F) \
  F(cuMemGetHandleForAddressRange, 5, 1) \
  F(cuPointerSetAttribute, 3, 2) \
  F(cuMulticastBindAddr, 5, 2) \
  F(cuFlushGPUDirectRDMAWrites, 2, -1)

// These give a handle to the driver that it does not know when it is one of
// ours. The second number is the argument that has the handle.
#define GMB_BINDING_FUNCTIONS(F) F(cuMulticastBindMem, 6, 2)

// These make contexts, whose work has to be waited for: the first argument says
// where the new one goes.
#define GMB_CREATING_FUNCTIONS(F) \
  F(cuCtxCreate, 3) \
  F(cuCtxCreate_v2, 3) \
  F(cuCtxCreate_v3, 5) \
  F(cuCtxCreate_v4, 4) \
  F(cuGLCtxCreate, 3) \
  F(cuGLCtxCreate_v2, 3) \
  F(cuVDPAUCtxCreate, 5) \
  F(cuVDPAUCtxCreate_v2, 5)
// clang-format on

#endif  // GMB_CLIENT_PRELOAD_GATED_FUNCTIONS_H_
