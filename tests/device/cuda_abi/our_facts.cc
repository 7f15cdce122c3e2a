#include "client/preload/exported.h"
#include "device/cuda/abi/driver_api.h"
// Behind them: it turns plain names into newer ones.
#include "tests/device/driver_of_programs.h"
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
#undef cuIpcOpenMemHandle
#undef cuStreamBeginCapture
#undef cuStreamDestroy
#define GMB_FACTS OurFacts
#include "tests/device/cuda_abi/collect.inc"
