#ifndef GMB_TESTS_DEVICE_CUDA_ABI_NAMES_H_
#define GMB_TESTS_DEVICE_CUDA_ABI_NAMES_H_

// All that is declared of the driver. abi_test.cc sees that nothing is missing.

// clang-format off
#define ABI_NUMBERS(F) \
  F(CUDA_SUCCESS) \
  F(CUDA_ERROR_INVALID_VALUE) \
  F(CUDA_ERROR_OUT_OF_MEMORY) \
  F(CUDA_ERROR_NOT_INITIALIZED) \
  F(CUDA_ERROR_DEINITIALIZED) \
  F(CUDA_ERROR_STUB_LIBRARY) \
  F(CUDA_ERROR_DEVICE_UNAVAILABLE) \
  F(CUDA_ERROR_NO_DEVICE) \
  F(CUDA_ERROR_INVALID_DEVICE) \
  F(CUDA_ERROR_INVALID_CONTEXT) \
  F(CUDA_ERROR_MAP_FAILED) \
  F(CUDA_ERROR_ECC_UNCORRECTABLE) \
  F(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) \
  F(CUDA_ERROR_NVLINK_UNCORRECTABLE) \
  F(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED) \
  F(CUDA_ERROR_OPERATING_SYSTEM) \
  F(CUDA_ERROR_INVALID_HANDLE) \
  F(CUDA_ERROR_ILLEGAL_STATE) \
  F(CUDA_ERROR_NOT_READY) \
  F(CUDA_ERROR_ILLEGAL_ADDRESS) \
  F(CUDA_ERROR_LAUNCH_TIMEOUT) \
  F(CUDA_ERROR_CONTEXT_IS_DESTROYED) \
  F(CUDA_ERROR_ASSERT) \
  F(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) \
  F(CUDA_ERROR_HARDWARE_STACK_ERROR) \
  F(CUDA_ERROR_ILLEGAL_INSTRUCTION) \
  F(CUDA_ERROR_MISALIGNED_ADDRESS) \
  F(CUDA_ERROR_INVALID_ADDRESS_SPACE) \
  F(CUDA_ERROR_INVALID_PC) \
  F(CUDA_ERROR_LAUNCH_FAILED) \
  F(CUDA_ERROR_NOT_PERMITTED) \
  F(CUDA_ERROR_NOT_SUPPORTED) \
  F(CUDA_ERROR_SYSTEM_NOT_READY) \
  F(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) \
  F(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) \
  F(CUDA_ERROR_MPS_CONNECTION_FAILED) \
  F(CUDA_ERROR_MPS_RPC_FAILURE) \
  F(CUDA_ERROR_MPS_SERVER_NOT_READY) \
  F(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED) \
  F(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED) \
  F(CUDA_ERROR_MPS_CLIENT_TERMINATED) \
  F(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) \
  F(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) \
  F(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) \
  F(CUDA_ERROR_UNKNOWN) \
  F(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) \
  F(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) \
  F(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) \
  F(CU_GET_PROC_ADDRESS_DEFAULT) \
  F(CU_GET_PROC_ADDRESS_LEGACY_STREAM) \
  F(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) \
  F(CU_GET_PROC_ADDRESS_SUCCESS) \
  F(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) \
  F(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) \
  F(CU_MEMORYTYPE_HOST) \
  F(CU_MEMORYTYPE_DEVICE) \
  F(CU_MEMORYTYPE_ARRAY) \
  F(CU_MEMORYTYPE_UNIFIED) \
  F(CU_POINTER_ATTRIBUTE_CONTEXT) \
  F(CU_POINTER_ATTRIBUTE_MEMORY_TYPE) \
  F(CU_POINTER_ATTRIBUTE_DEVICE_POINTER) \
  F(CU_POINTER_ATTRIBUTE_HOST_POINTER) \
  F(CU_POINTER_ATTRIBUTE_P2P_TOKENS) \
  F(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) \
  F(CU_POINTER_ATTRIBUTE_BUFFER_ID) \
  F(CU_POINTER_ATTRIBUTE_IS_MANAGED) \
  F(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) \
  F(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) \
  F(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) \
  F(CU_POINTER_ATTRIBUTE_RANGE_SIZE) \
  F(CU_POINTER_ATTRIBUTE_MAPPED) \
  F(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) \
  F(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) \
  F(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS) \
  F(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) \
  F(CU_POINTER_ATTRIBUTE_MAPPING_SIZE) \
  F(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR) \
  F(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) \
  F(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) \
  F(CU_MEMHOSTREGISTER_PORTABLE) \
  F(CU_MEM_HANDLE_TYPE_NONE) \
  F(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) \
  F(CU_MEM_HANDLE_TYPE_WIN32) \
  F(CU_MEM_HANDLE_TYPE_WIN32_KMT) \
  F(CU_MEM_HANDLE_TYPE_FABRIC) \
  F(CU_MEM_ALLOCATION_TYPE_INVALID) \
  F(CU_MEM_ALLOCATION_TYPE_PINNED) \
  F(CU_MEM_ALLOCATION_COMP_NONE) \
  F(CU_MEM_ALLOCATION_COMP_GENERIC) \
  F(CU_MEM_LOCATION_TYPE_INVALID) \
  F(CU_MEM_LOCATION_TYPE_DEVICE) \
  F(CU_MEM_LOCATION_TYPE_HOST) \
  F(CU_MEM_LOCATION_TYPE_HOST_NUMA) \
  F(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) \
  F(CU_MEM_ACCESS_FLAGS_PROT_NONE) \
  F(CU_MEM_ACCESS_FLAGS_PROT_READ) \
  F(CU_MEM_ACCESS_FLAGS_PROT_READWRITE) \
  F(CU_MEM_ALLOC_GRANULARITY_MINIMUM) \
  F(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) \
  F(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES) \
  F(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC) \
  F(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) \
  F(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) \
  F(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) \
  F(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) \
  F(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) \
  F(CU_MEMPOOL_ATTR_USED_MEM_HIGH) \
  F(CU_STREAM_DEFAULT) \
  F(CU_STREAM_NON_BLOCKING) \
  F(CU_EVENT_DEFAULT) \
  F(CU_EVENT_BLOCKING_SYNC) \
  F(CU_EVENT_DISABLE_TIMING) \
  F(CU_EVENT_INTERPROCESS) \
  F(CU_STREAM_CAPTURE_MODE_GLOBAL) \
  F(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) \
  F(CU_STREAM_CAPTURE_MODE_RELAXED) \
  F(CU_STREAM_CAPTURE_STATUS_NONE) \
  F(CU_STREAM_CAPTURE_STATUS_ACTIVE) \
  F(CU_STREAM_CAPTURE_STATUS_INVALIDATED) \
  F(CU_STREAM_LEGACY) \
  F(CU_STREAM_PER_THREAD)

#define ABI_NUMBERS_OF_CUDA_13(F) \
  F(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER) \
  F(CUDA_ERROR_CONTAINED)

#define ABI_TYPES(F) \
  F(CUdevice_attribute) \
  F(CUdriverProcAddressQueryResult) \
  F(CUmemorytype) \
  F(CUpointer_attribute) \
  F(CUipcMemHandle) \
  F(cuuint64_t) \
  F(CUdevice) \
  F(CUdeviceptr) \
  F(CUmemGenericAllocationHandle) \
  F(CUcontext) \
  F(CUgreenCtx) \
  F(CUstream) \
  F(CUevent) \
  F(CUgraph) \
  F(CUgraphNode) \
  F(CUmemoryPool) \
  F(CUuuid) \
  F(CUmemPool_attribute) \
  F(CUmemPoolProps) \
  F(CUresult) \
  F(CUstreamCaptureMode) \
  F(CUstreamCaptureStatus) \
  F(CUgraphEdgeData) \
  F(CUmemAllocationHandleType) \
  F(CUmemAllocationType) \
  F(CUmemLocationType) \
  F(CUmemAccess_flags) \
  F(CUmemAllocationGranularity_flags) \
  F(CUmemLocation) \
  F(CUmemAllocationProp) \
  F(CUmemAccessDesc) \
  F(CUmodule) \
  F(CUfunction) \
  F(CUgraphExec) \
  F(CUdevResourceDesc) \
  F(CUhostFn)

// CUmemPoolProps has more fields since CUDA 12.9, of bytes reserved before.
#define ABI_FIELDS(F) \
  F(CUuuid, bytes) \
  F(CUipcMemHandle, reserved) \
  F(CUmemLocation, type) \
  F(CUmemLocation, id) \
  F(CUmemAllocationProp, type) \
  F(CUmemAllocationProp, requestedHandleTypes) \
  F(CUmemAllocationProp, location) \
  F(CUmemAllocationProp, win32HandleMetaData) \
  F(CUmemAllocationProp, allocFlags) \
  F(CUmemAllocationProp, allocFlags.compressionType) \
  F(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) \
  F(CUmemAllocationProp, allocFlags.usage) \
  F(CUmemAllocationProp, allocFlags.reserved) \
  F(CUmemAccessDesc, location) \
  F(CUmemAccessDesc, flags) \
  F(CUmemPoolProps, allocType) \
  F(CUmemPoolProps, handleTypes) \
  F(CUmemPoolProps, location) \
  F(CUmemPoolProps, win32SecurityAttributes) \
  F(CUmemPoolProps, maxSize) \
  F(CUgraphEdgeData, from_port) \
  F(CUgraphEdgeData, to_port) \
  F(CUgraphEdgeData, type) \
  F(CUgraphEdgeData, reserved)

#define ABI_FUNCTIONS(F) \
  F(cuDevicePrimaryCtxRetain) \
  F(cuDevicePrimaryCtxRelease_v2) \
  F(cuDevicePrimaryCtxReset_v2) \
  F(cuDevicePrimaryCtxGetState) \
  F(cuCtxGetCurrent) \
  F(cuCtxGetDevice) \
  F(cuCtxPushCurrent_v2) \
  F(cuCtxPopCurrent_v2) \
  F(cuCtxSynchronize) \
  F(cuCtxDestroy_v2) \
  F(cuCtxFromGreenCtx) \
  F(cuGreenCtxDestroy) \
  F(cuInit) \
  F(cuDriverGetVersion) \
  F(cuGetErrorName) \
  F(cuGetProcAddress_v2) \
  F(cuDeviceGet) \
  F(cuDeviceGetCount) \
  F(cuDeviceGetName) \
  F(cuDeviceGetUuid_v2) \
  F(cuDeviceGetAttribute) \
  F(cuDeviceTotalMem_v2) \
  F(cuDeviceCanAccessPeer) \
  F(cuMemAlloc_v2) \
  F(cuMemAllocPitch_v2) \
  F(cuMemFree_v2) \
  F(cuMemGetInfo_v2) \
  F(cuMemGetAddressRange_v2) \
  F(cuPointerGetAttribute) \
  F(cuPointerGetAttributes) \
  F(cuIpcGetMemHandle) \
  F(cuIpcOpenMemHandle_v2) \
  F(cuIpcCloseMemHandle) \
  F(cuMemcpyDtoH_v2) \
  F(cuMemcpyHtoD_v2) \
  F(cuMemcpyDtoHAsync_v2) \
  F(cuMemcpyHtoDAsync_v2) \
  F(cuMemsetD8_v2) \
  F(cuMemHostRegister_v2) \
  F(cuMemHostUnregister) \
  F(cuMemAllocAsync) \
  F(cuMemAllocFromPoolAsync) \
  F(cuMemFreeAsync) \
  F(cuDeviceGetDefaultMemPool) \
  F(cuDeviceGetMemPool) \
  F(cuMemPoolCreate) \
  F(cuMemPoolDestroy) \
  F(cuMemPoolTrimTo) \
  F(cuMemPoolGetAttribute) \
  F(cuMemPoolSetAttribute) \
  F(cuStreamCreate) \
  F(cuStreamDestroy_v2) \
  F(cuStreamSynchronize) \
  F(cuStreamWaitEvent) \
  F(cuStreamGetCtx) \
  F(cuStreamBeginCapture_v2) \
  F(cuStreamBeginCaptureToGraph) \
  F(cuStreamEndCapture) \
  F(cuStreamIsCapturing) \
  F(cuEventCreate) \
  F(cuEventDestroy_v2) \
  F(cuEventRecord) \
  F(cuEventQuery) \
  F(cuEventSynchronize) \
  F(cuMemCreate) \
  F(cuMemRelease) \
  F(cuMemRetainAllocationHandle) \
  F(cuMemExportToShareableHandle) \
  F(cuMemImportFromShareableHandle) \
  F(cuMemGetAllocationGranularity) \
  F(cuMemGetAllocationPropertiesFromHandle) \
  F(cuMemAddressReserve) \
  F(cuMemAddressFree) \
  F(cuMemMap) \
  F(cuMemUnmap) \
  F(cuMemSetAccess) \
  F(cuMemGetAccess) \
  F(cuModuleLoadData) \
  F(cuModuleGetFunction) \
  F(cuLaunchKernel) \
  F(cuLaunchHostFunc) \
  F(cuGraphInstantiateWithFlags) \
  F(cuGraphLaunch) \
  F(cuGraphExecDestroy) \
  F(cuGraphDestroy) \
  F(cuMemAllocManaged) \
  F(cuMemcpyDtoDAsync_v2) \
  F(cuMemsetD8Async) \
  F(cuGreenCtxCreate) \
  F(cuStreamQuery) \
  F(cuDeviceSetMemPool) \
  F(cuGetProcAddress) \
  F(cuIpcOpenMemHandle) \
  F(cuDevicePrimaryCtxReset) \
  F(cuDevicePrimaryCtxRelease) \
  F(cuCtxDestroy) \
  F(cuCtxAttach) \
  F(cuCtxDetach) \
  F(cuStreamDestroy) \
  F(cuStreamBeginCapture) \
  F(cuStreamBeginCapture_ptsz) \
  F(cuMemAllocAsync_ptsz) \
  F(cuMemAllocFromPoolAsync_ptsz) \
  F(cuMemFreeAsync_ptsz) \
  F(cuStreamBeginCapture_v2_ptsz) \
  F(cuStreamBeginCaptureToGraph_ptsz) \
  F(cuStreamEndCapture_ptsz) \
  F(cuStreamSynchronize_ptsz)

#define ABI_FUNCTIONS_OF_CUDA_13(F) \
  F(cuCtxCreate_v4) \
  F(cuCtxSynchronize_v2)
// clang-format on

#endif  // GMB_TESTS_DEVICE_CUDA_ABI_NAMES_H_
