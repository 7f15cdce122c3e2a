#ifndef GMB_DEVICE_CUDA_ABI_DRIVER_API_H_
#define GMB_DEVICE_CUDA_ABI_DRIVER_API_H_

// The part of the CUDA driver's binary interface that gmb uses, in words of its
// own, so that GPU support needs no header of NVIDIA's. The facts (names,
// numbers, layouts, what functions take) are those that cuda.h of CUDA 12.4 to
// 13 publishes and libcuda.so.1 keeps: a new version of a function gets a name
// of its own. tests/device/cuda_abi holds them against cuda.h, where that is.
//
// A function is declared under the name that the library exports, with its
// version; cuda.h's macros, which turn a plain name into the newest version's,
// are left out. Enumerations have the type that values of other releases fit
// into. Names are the driver's own and global: a source includes this or
// cuda.h, never both.

#include "device/cuda/abi/contexts.h"
#include "device/cuda/abi/devices.h"
#include "device/cuda/abi/memory.h"
#include "device/cuda/abi/objects.h"
#include "device/cuda/abi/pools.h"
#include "device/cuda/abi/result.h"
#include "device/cuda/abi/streams.h"
#include "device/cuda/abi/virtual_memory.h"

#endif  // GMB_DEVICE_CUDA_ABI_DRIVER_API_H_
